import { createLineEncoder } from "./journal-line.ts";
import { jsonWithin } from "./journal-shorten.ts";
import type { JournalLog, Recorded, Started } from "./journal-types.ts";
import type { Segments } from "./segments.ts";

/** Kept free in every reserve for the envelope around an outcome's JSON. */
const ENVELOPE_BYTES = 96;

/** No room, or no safe place, for the record of another call: it must not go to a provider. */
export class JournalFull extends Error {
  readonly code = "journal_full";
}

export type JournalWriter<Intent, Outcome> = {
  intent(record: Intent): void;
  /** False when the disk refused the line: it is kept in memory and tried again with `retry`. */
  outcome(record: Outcome): boolean;
  /** Writes again what the disk refused; false when it still does. */
  retry(): boolean;
  /** Writes the intents that are still open once more, when they stand in `segment`, so that it can be deleted. */
  carry(intents: Iterable<Intent>, segment: number): void;
  /** Takes no more intents, for this reason. */
  fail(reason: string): void;
  problem(): string | null;
  openIntents(): number;
  /** Whether an intent of ordinary length would be refused. */
  full(): boolean;
};

/** Writes lines so that every open intent keeps room for its outcome. */
export function createJournalWriter<
  Intent extends Started,
  Outcome extends Recorded,
>(options: {
  readonly instance: string;
  readonly segments: Segments;
  readonly freeText: readonly string[];
  /** Longest intent, in bytes of JSON. */
  readonly intentBytes: number;
  /** Longest line of an outcome, in bytes. */
  readonly reserveBytes: number;
  readonly now: () => number;
  readonly log: JournalLog;
}): JournalWriter<Intent, Outcome> {
  const { segments, freeText, intentBytes, reserveBytes, now, log } = options;
  const encoder = createLineEncoder();
  /** The segment of each intent without outcome, by call id. */
  const open = new Map<string, number>();
  /** Outcomes that the disk refused, by call id. Their intents stay open, so their room stays reserved. */
  const refused = new Map<string, string>();
  let opened = false;
  let problem: string | null = null;
  let refusing = false;

  function writeLine(json: string, reserves: number): void {
    const line = encoder.encode(json);
    if (!segments.reserve(line.length, reserves)) throw noRoom();
    try {
      segments.append(line);
    } catch (error) {
      throw new JournalFull(
        `The journal cannot be written (${messageOf(error)}): free its disk or mend it.`,
        { cause: error },
      );
    }
  }

  function writeIntent(json: string, reserves: number): void {
    writeLine(`{"intent":${json},"at":${now()}}`, reserves);
  }

  /** Marks the begin of this life before its first intent: all that is open before it is interrupted. */
  function writeOpened(): void {
    const instance = JSON.stringify(options.instance);
    writeLine(`{"opened":${instance},"at":${now()}}`, 1);
    opened = true;
  }

  function noRoom(): JournalFull {
    const message =
      "The journal has no room for another call: bring the database back so that it drains, free its disk, or raise its limit.";
    if (!refusing) log.error(situation(), message);
    refusing = true;
    return new JournalFull(message);
  }

  function situation(): object {
    return {
      openIntents: open.size,
      segments: segments.list.length,
      usedBytes: segments.usedBytes(),
    };
  }

  function writeOutcome(id: string, json: string, segment: number): boolean {
    const line = encoder.encode(
      `{"outcome":${json},"segment":${segment},"at":${now()}}`,
    );
    try {
      // The reserve of its own intent is what it uses up.
      if (!segments.reserve(line.length, open.size - 1)) return false;
      segments.append(line);
    } catch (error) {
      if (refused.size === 0) {
        log.error(
          { error: messageOf(error) },
          "The journal's disk refuses outcomes: they are kept in memory and tried again.",
        );
      }
      return false;
    }
    open.delete(id);
    return true;
  }

  function retry(): boolean {
    for (const [id, json] of refused) {
      if (writeOutcome(id, json, open.get(id) ?? 0)) refused.delete(id);
    }
    return refused.size === 0;
  }

  return {
    intent(record) {
      if (problem !== null) throw new JournalFull(problem);
      if (open.has(record.id)) {
        throw new Error(`Call ${record.id} has an open intent already.`);
      }
      const json = jsonWithin(record, freeText, intentBytes);
      if (json === null) {
        throw new Error(
          `The intent of call ${record.id} is longer than ${intentBytes} bytes even with its free text shortened.`,
        );
      }
      if (!opened) writeOpened();
      writeIntent(json, open.size + 1);
      open.set(record.id, segments.active().number);
      if (refusing) {
        refusing = false;
        log.info(situation(), "The journal has room again.");
      }
      segments.keepSpare(open.size);
    },
    outcome(record) {
      const segment = open.get(record.id);
      if (segment === undefined || refused.has(record.id)) {
        log.error(
          { id: record.id },
          "An outcome without an open intent was not written to the journal.",
        );
        return true;
      }
      const json =
        jsonWithin(record, freeText, reserveBytes - ENVELOPE_BYTES) ??
        // Only where the fields that are not free text are too long: then it needs room beside the reserves.
        JSON.stringify(record);
      if (writeOutcome(record.id, json, segment)) return true;
      refused.set(record.id, json);
      return false;
    },
    retry,
    carry(intents, segment) {
      for (const record of intents) {
        if (open.get(record.id) !== segment || refused.has(record.id)) continue;
        const json = jsonWithin(record, freeText, intentBytes);
        if (json === null) continue;
        try {
          writeIntent(json, open.size);
        } catch {
          // No room: the old segment stays until the call ends.
          return;
        }
        open.set(record.id, segments.active().number);
      }
    },
    fail(reason) {
      problem ??= reason;
    },
    problem: () => problem,
    openIntents: () => open.size,
    full() {
      if (problem !== null) return true;
      if (segments.hasRoom(reserveBytes, open.size + 1)) return false;
      // Asks the disk again, so that a journal without calls finds out that there is room.
      segments.keepSpare(open.size);
      return true;
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
