import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask, startNotes, testIni, type NotesProcess } from "./start-notes.ts";
import { waitFor } from "../wait-for.ts";

export const MINUTE = 60_000;
export const DAY = 24 * 60 * MINUTE;

/** A notes store in a separate process, with a clock that tests can advance. */
export interface NotesWithClock {
  readonly url: string;
  /** The store's time in milliseconds since 1970. */
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  /** Kills it and restarts it on the same data. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startNotesWithClock(): Promise<NotesWithClock> {
  const directory = mkdtempSync(join(tmpdir(), "hearth-clock-"));
  const clockFile = join(directory, "clock");
  let ahead = 0;
  const advance = (ms: number): void => {
    ahead += ms;
    writeFileSync(clockFile, String(ahead));
  };
  advance(0);
  let notes: NotesProcess = await startNotes(testIni(), directory, {
    HEARTH_TEST_CLOCK: clockFile,
    NODE_OPTIONS: `--import=${new URL("moved-clock.ts", import.meta.url).href}`,
  });
  return {
    url: notes.url,
    now: () => Date.now() + ahead,
    advance,
    restart: async () => {
      notes = await notes.restart();
    },
    stop: async () => {
      await notes.stop();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Compacts a vault and waits until the compaction has ended. */
export async function compactVault(
  { url }: NotesWithClock,
  vault: string,
): Promise<void> {
  await ask(`${url}/${vault}/_compact`, { json: {} });
  await waitFor("the end of the compaction", async () => {
    const info = (await (await ask(`${url}/${vault}`)).json()) as {
      compact_running: boolean;
    };
    return !info.compact_running;
  });
}
