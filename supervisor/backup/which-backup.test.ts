import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chooseBackup } from "./which-backup.ts";

function directoryWith(...names: readonly string[]): string {
  const directory = mkdtempSync(join(tmpdir(), "hearth-backups-"));
  names.forEach((name) => mkdirSync(join(directory, name)));
  return directory;
}

test.each([
  ["postgres", "hearth backup run"],
  ["notes", "hearth notes backup"],
] as const)(
  "without %s backups, the message names the command that creates one",
  (kind, command) => {
    const directory = directoryWith();
    const text = `there are no backups in ${directory}. Run \`${command}\` to create one`;
    expect(() => chooseBackup(kind, directory, undefined)).toThrow(text);
    expect(() => chooseBackup(kind, directory, "2026")).toThrow(
      `backup "2026" not found; ${text}`,
    );
  },
);

test("an unknown name is rejected with the available ones; without a name, the newest is chosen", () => {
  const directory = directoryWith("2026-11-20T030000Z", "2026-11-21T030000Z");
  expect(chooseBackup("notes", directory, undefined)).toBe(
    "2026-11-21T030000Z",
  );
  expect(() => chooseBackup("notes", directory, "2025")).toThrow(
    'backup "2025" not found; available: 2026-11-21T030000Z, 2026-11-20T030000Z.',
  );
});
