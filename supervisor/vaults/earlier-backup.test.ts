import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, expect, test } from "vitest";
import { writeCompressed } from "../backup/backup-files.ts";
import { writeManifest } from "../backup/manifest.ts";
import { readEarlier } from "./earlier-backup.ts";

const DOCUMENTS = 400;
const CONTENT = "x".repeat(100_000);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const backup = mkdtempSync(join(tmpdir(), "hearth-backup-"));
afterAll(() => rmSync(backup, { recursive: true, force: true }));

function* lines(): Generator<string> {
  yield "{}\n";
  for (let number = 0; number < DOCUMENTS; number += 1) {
    const leaf = {
      _id: `h:${"chunk".repeat(10)}${number}`,
      _rev: `1-${"0123456789abcdef".repeat(2)}`,
      data: CONTENT,
    };
    yield `${JSON.stringify(leaf)}\n`;
  }
}

test("the documents of the previous backup are known without their content in memory", async () => {
  const { signal } = new AbortController();
  const file = await writeCompressed(
    backup,
    "vault-1.jsonl.gz",
    Readable.from(lines()),
    signal,
  );
  writeManifest(backup, {
    format: 1,
    kind: "notes",
    takenAt: 0,
    files: [file],
    users: 0,
    vaults: [
      {
        name: "notes",
        instance: "1",
        file: file.name,
        size: file.bytes,
        parts: [],
        documents: DOCUMENTS,
        leaves: DOCUMENTS,
        missing: [],
      },
    ],
  });
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const earlier = await readEarlier(backup, "notes", "1", signal, () => {});
  collectGarbage();
  const used = process.memoryUsage().heapUsed - before;
  expect(earlier?.documents.size).toBe(DOCUMENTS);
  expect(used).toBeLessThan((DOCUMENTS * CONTENT.length) / 10);
});
