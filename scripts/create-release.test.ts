import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const project = fileURLToPath(new URL("..", import.meta.url));

test("a start states the cause when the creation of its release is killed, as without memory", () => {
  const checkout = mkdtempSync(join(tmpdir(), "hearth-release-"));
  try {
    for (const part of ["bin", "supervisor/home/home-root.js"]) {
      cpSync(join(project, part), join(checkout, part), { recursive: true });
    }
    writeFileSync(join(checkout, "package.json"), '{"type":"module"}');
    writeFileSync(join(checkout, "package-lock.json"), "{}");
    const node = join(checkout, "node_modules", "node", "bin");
    mkdirSync(node, { recursive: true });
    writeFileSync(join(node, "node"), "#!/bin/sh\nkill -9 $$\n", {
      mode: 0o755,
    });
    const installed = hash("sha256", "{}");
    writeFileSync(join(checkout, "node_modules", ".hearth-setup"), installed);
    const started = spawnSync(
      process.execPath,
      [join(checkout, "bin", "hearth.js"), "up"],
      {
        encoding: "utf8",
        env: { ...process.env, HEARTH_HOME: join(checkout, "home") },
      },
    );
    expect(started.status).toBe(1);
    expect(started.stderr).toContain(
      "hearth: could not create the release of this checkout (ended by SIGKILL)",
    );
  } finally {
    rmSync(checkout, { recursive: true });
  }
});
