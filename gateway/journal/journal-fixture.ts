import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { openJournal } from "./journal.ts";
import type {
  Journal,
  JournalLog,
  JournalOptions,
  JournalRow,
} from "./journal-types.ts";

/** Records, directories and logs for the journal's tests. */

export interface TestIntent {
  readonly id: string;
  readonly startedAt: number;
  readonly payer?: string;
  readonly metadata?: unknown;
}
interface TestOutcome {
  readonly id: string;
  readonly cost: number;
  readonly error?: string;
  readonly metadata?: unknown;
}
export type TestJournal = Journal<TestIntent, TestOutcome>;
export type TestRow = JournalRow<TestIntent, TestOutcome>;

interface LoggedLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: object;
  readonly message: string;
}

export function recordingLog(): JournalLog & { readonly lines: LoggedLine[] } {
  const lines: LoggedLine[] = [];
  const at =
    (level: LoggedLine["level"]) => (fields: object, message: string) =>
      void lines.push({ level, fields, message });
  return { lines, info: at("info"), warn: at("warn"), error: at("error") };
}

export async function makeDirectory(): Promise<string> {
  return fs.mkdtemp(path.join(os.tmpdir(), "hearth-journal-"));
}

export function openTestJournal(
  dir: string,
  options: Partial<JournalOptions<TestIntent, TestOutcome>> = {},
): Promise<TestJournal> {
  return openJournal<TestIntent, TestOutcome>({
    dir,
    segmentBytes: 16 * 1024,
    limitBytes: 1024 * 1024,
    reserveBytes: 512,
    sync: "interval",
    freeText: ["error", "metadata"],
    now: () => Date.now(),
    log: recordingLog(),
    ...options,
  });
}

/** All current rows, in small batches. */
export async function readAll(journal: TestJournal): Promise<TestRow[]> {
  const rows: TestRow[] = [];
  for (;;) {
    const batch = await journal.read(7);
    if (batch.rows.length === 0) {
      return rows;
    }
    rows.push(...batch.rows);
  }
}

/** The files that a process killed now would leave: its written bytes, without its memory. */
export async function copyAsKilled(directory: string): Promise<string> {
  const copy = await makeDirectory();
  for (const name of await fs.readdir(directory)) {
    try {
      await fs.copyFile(path.join(directory, name), path.join(copy, name));
    } catch (error) {
      // A segment deleted or renamed meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        throw error;
      }
    }
  }
  return copy;
}

export async function segmentFiles(directory: string): Promise<string[]> {
  const names = await fs.readdir(directory);
  return names.filter((name) => name.endsWith(".jsonl")).sort();
}
