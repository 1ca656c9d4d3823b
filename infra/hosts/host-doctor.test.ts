import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { execute } from "../../core/execute.ts";
import { inProject } from "../project-files.ts";

/** Instead of a host without an engine. */
const DOCKER =
  "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n";

test("the commands that fix a problem change the checked stack, not the selected one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-doctor-"));
  const hostAt = (address: string) => ({
    docker: `tcp://${address}:2375`,
    address,
    publish: [address],
  });
  const hosts = { a: hostAt("192.168.1.10"), b: hostAt("192.168.1.11") };
  try {
    writeFileSync(join(directory, "docker"), DOCKER);
    chmodSync(join(directory, "docker"), 0o755);
    const file = join(directory, "Pulumi.trial.yaml");
    writeFileSync(file, JSON.stringify({ config: { "hearth:hosts": hosts } }));
    const { stdout } = await execute(
      process.execPath,
      [
        inProject("infra/hosts/host-doctor.ts"),
        "--stack",
        "trial",
        "--file",
        file,
      ],
      { env: { PATH: `${directory}:${process.env["PATH"] ?? ""}` } },
    );
    for (const host of ["a", "b"]) {
      expect(stdout).toContain(
        `→ start Docker there, or correct its address: npx pulumi config set --stack trial --path hearth:hosts.${host}.docker ssh://`,
      );
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
