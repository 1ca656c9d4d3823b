import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";

test.runIf(process.platform === "linux")(
  "clients may have half of the files that a process may open",
  () => {
    const script =
      "const { maxClientConnections } = await import(process.env.MODULE); console.log(maxClientConnections());";
    const output = execFileSync(
      "sh",
      [
        "-c",
        'ulimit -n 128; exec "$0" --input-type=module -e "$1"',
        process.execPath,
        script,
      ],
      {
        env: {
          ...process.env,
          MODULE: pathToFileURL(join(import.meta.dirname, "open-files.ts"))
            .href,
        },
        encoding: "utf8",
      },
    );
    expect(output.trim()).toBe("64");
  },
);
