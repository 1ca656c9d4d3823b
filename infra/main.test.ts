import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { inProject } from "./project-files.ts";

test("under an old Node the entry point names the required version and the command that uses it", async () => {
  const asOldNode = `
    Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.17.1" } });
    Object.defineProperty(process, "version", { value: "v22.17.1" });
    await import(${JSON.stringify(inProject("infra/main.js"))});`;
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>(
    (resolve) =>
      execFile(
        process.execPath,
        ["--input-type=module", "-e", asOldNode],
        (error, _stdout, output) =>
          resolve({ code: error?.code, stderr: output }),
      ),
  );
  expect(code).toBe(1);
  expect(stderr).toBe(
    "hearth: this program needs Node 22.18 or newer, this is v22.17.1: run it as `npx pulumi up`, which finds the project's own Node.\n",
  );
});
