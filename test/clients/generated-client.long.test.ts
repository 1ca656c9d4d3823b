import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startAdminFixture } from "../servers/admin.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { pythonOrLeaveOut } from "./python.ts";

const SUITE = fileURLToPath(new URL("generated_suite.py", import.meta.url));
const run = promisify(execFile);

test("a client generated from the document works", async ({ skip }) => {
  const python = await pythonOrLeaveOut();
  if (python === null) {
    return skip();
  }
  const directory = mkdtempSync(join(tmpdir(), "hearth-generated-"));
  const fixture = await startAdminFixture();
  try {
    const { text } = await fixture.request(
      "GET",
      "/openapi.json",
      undefined,
      "",
    );
    const file = join(directory, "openapi.json");
    writeFileSync(file, text);
    const env = {
      // The generator formats its output with a program next to its Python.
      PATH: [dirname(python), process.env["PATH"]].join(delimiter),
      PYTHONIOENCODING: "utf-8",
    };
    const generated = await run(
      python,
      [
        "-m",
        "openapi_python_client",
        "generate",
        "--path",
        file,
        "--output-path",
        join(directory, "generated"),
        "--meta",
        "none",
      ],
      { env },
    );
    // The generator warns of every unsupported schema.
    expect(generated.stdout + generated.stderr).not.toMatch(/warning|error/i);
    copyFileSync(SUITE, join(directory, "suite.py"));
    const { stdout } = await run(python, [join(directory, "suite.py")], {
      env: { ...env, HEARTH_URL: fixture.url, HEARTH_MASTER_KEY: MASTER_KEY },
    });
    expect(stdout.trim().split("\n")).toEqual([
      expect.stringMatching(/^key sk-\.\.\..{4} 5$/),
      "answer four words in here",
      "left True",
      "refused max_budget",
      "listed 1",
    ]);
  } finally {
    await fixture.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}, 300_000);
