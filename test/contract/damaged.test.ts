import {
  closeSync,
  fstatSync,
  openSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ask, startNotes, testIni } from "./start-notes.ts";

const PAGE_BYTES = 4096;

test("a vault whose file is damaged is named, and the other vaults are not", async () => {
  let notes = await startNotes(testIni());
  try {
    const docs = Array.from({ length: 500 }, (_each, index) => ({
      _id: `note-${index}`,
      text: "x".repeat(500),
    }));
    for (const name of ["damaged", "sound"]) {
      await ask(`${notes.url}/${name}`, { method: "PUT" });
      await ask(`${notes.url}/${name}/_bulk_docs`, { json: { docs } });
    }
    overwriteEnd(join(notes.directory, "data", "databases", "damaged.sqlite"));
    notes = await notes.restart();
    const readAll = async (name: string): Promise<string> => {
      const answer = await ask(
        `${notes.url}/${name}/_all_docs?include_docs=true`,
      );
      return await answer.text();
    };
    await expect(readAll("sound")).resolves.toContain("note-499");
    await expect(readAll("damaged")).rejects.toThrow();
    const system = await ask(`${notes.url}/_node/_local/_system`);
    expect(await system.json()).toMatchObject({
      failing_databases: [
        {
          database: "damaged",
          at: expect.any(String),
          reason: expect.stringMatching(/^damaged_/),
        },
      ],
    });
    const page = await (await ask(`${notes.url}/_utils`)).text();
    expect(page).toContain("1 database could not be read or written.");
    expect(page).toContain("damaged could not be read or written");
    await ask(`${notes.url}/damaged`, { method: "DELETE" });
    await ask(`${notes.url}/damaged`, { method: "PUT" });
    const restored = await ask(`${notes.url}/_node/_local/_system`);
    expect(await restored.json()).not.toHaveProperty("failing_databases");
    expect(await (await ask(`${notes.url}/_utils`)).text()).toContain(
      "All is well.",
    );
  } finally {
    await notes.stop();
  }
});

test("a vault that cannot be opened hides no others", async () => {
  let notes = await startNotes(testIni());
  try {
    for (const name of ["damaged", "sound"]) {
      await ask(`${notes.url}/${name}`, { method: "PUT" });
    }
    await notes.kill("SIGTERM");
    const databases = join(notes.directory, "data", "databases");
    writeFileSync(join(databases, "damaged.sqlite"), "damaged");
    notes = await notes.restart();
    const page = await ask(`${notes.url}/_utils`);
    const text = await page.text();
    expect(text).toContain("1 database cannot be read.");
    expect(text).toContain("damaged cannot be read");
    expect(text).toContain('value="sound"');
    const infos = await ask(`${notes.url}/_dbs_info`, {
      method: "POST",
      json: { keys: ["damaged", "sound"] },
    });
    expect(await infos.json()).toMatchObject([
      { key: "damaged", error: "damaged" },
      { key: "sound", info: { doc_count: 0 } },
    ]);
  } finally {
    await notes.stop();
  }
});

/** Overwrites the last three quarters of a database file, to which its log was written back before. */
function overwriteEnd(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  const file = openSync(path, "r+");
  const pages = fstatSync(file).size / PAGE_BYTES;
  for (let page = Math.ceil(pages / 4); page < pages; page += 1) {
    writeSync(
      file,
      Buffer.alloc(PAGE_BYTES, 0xa5),
      0,
      PAGE_BYTES,
      page * PAGE_BYTES,
    );
  }
  closeSync(file);
}
