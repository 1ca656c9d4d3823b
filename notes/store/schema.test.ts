import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openWriter } from "./schema.ts";

test("a new database contains nothing of a removed one whose write-ahead log was left behind", () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-schema-"));
  try {
    const file = join(directory, "vault.sqlite");
    const removed = openWriter(file, "1");
    removed.exec("INSERT INTO local_documents VALUES ('_local/seed', 1, '')");
    // A kill between the removals of the two files leaves the log.
    cpSync(`${file}-wal`, join(directory, "log"));
    removed.close();
    rmSync(file);
    cpSync(join(directory, "log"), `${file}-wal`);

    const database = openWriter(file, "2");
    const rows = database.prepare("SELECT id FROM local_documents").all();
    const started = database
      .prepare("SELECT value FROM properties WHERE name = ?")
      .get("instance_start_time");
    database.close();
    expect(rows).toEqual([]);
    expect(started).toEqual({ value: "2" });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
