import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { chooseBackup } from "./which-backup.ts";

const now = Date.UTC(2026, 10, 21, 4);

function directoryWith(...names: readonly string[]): string {
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-backups-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
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
    const text = `there are no backups in ${directory}. Run \`${command}\` to create one, or fetch one: \`hearth offsite fetch\` from the off-site target, \`hearth backup fetch\` from the other host of a stack.`;
    expect(() => chooseBackup(kind, directory, undefined, now)).toThrow(text);
    expect(() => chooseBackup(kind, directory, "2026", now)).toThrow(
      `backup "2026" not found; ${text}`,
    );
  },
);

test("an unknown name is rejected with the available ones; without a name, the newest is chosen", () => {
  const directory = directoryWith("2026-11-20T030000Z", "2026-11-21T030000Z");
  expect(chooseBackup("notes", directory, undefined, now)).toBe(
    "2026-11-21T030000Z",
  );
  expect(() => chooseBackup("notes", directory, "2025", now)).toThrow(
    'backup "2025" not found; available: 2026-11-21T030000Z, 2026-11-20T030000Z.',
  );
});

test("a backup taken while the clock was ahead is chosen only by name, or if there is no other", () => {
  const ahead = "2027-11-21T030000Z";
  const directory = directoryWith("2026-11-20T030000Z", ahead);
  expect(chooseBackup("postgres", directory, undefined, now)).toBe(
    "2026-11-20T030000Z",
  );
  expect(chooseBackup("postgres", directory, ahead, now)).toBe(ahead);
  expect(chooseBackup("postgres", directoryWith(ahead), undefined, now)).toBe(
    ahead,
  );
  // The clocks of two hosts differ a little.
  expect(
    chooseBackup("postgres", directory, undefined, now + 364.5 * 86_400_000),
  ).toBe(ahead);
});
