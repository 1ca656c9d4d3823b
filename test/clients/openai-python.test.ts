import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { FORMATS } from "./provider-formats.ts";
import { pythonOrLeaveOut } from "./python.ts";
import { startClientTestbed } from "./testbed.ts";

const SUITE = fileURLToPath(new URL("openai_suite.py", import.meta.url));

test("OpenAI's Python client, through every provider format", async ({
  skip,
}) => {
  const python = await pythonOrLeaveOut();
  if (python === null) {
    return skip();
  }
  const testbed = await startClientTestbed();
  try {
    const { stdout } = await promisify(execFile)(python, [SUITE, ...FORMATS], {
      env: {
        PATH: process.env["PATH"] ?? "",
        PYTHONIOENCODING: "utf-8",
        HEARTH_URL: testbed.url,
        HEARTH_KEY: await testbed.createKey(),
      },
    });
    // Eight checks of each format, and embeddings where the format has them.
    expect(stdout.trim().split("\n")).toHaveLength(8 * FORMATS.length + 3);
  } finally {
    await testbed.stop();
  }
}, 180_000);
