import { createLineEncoder, type JournalLine } from "./journal-line.ts";
import { jsonWithin, type Written } from "./journal-shorten.ts";
import type { JournalTail } from "./journal-tail.ts";
import type { JournalLog, Recorded, Started } from "./journal-types.ts";
import type { Segments } from "./segments.ts";

/** Kept free in every reserve for the envelope around an outcome's JSON. */
const ENVELOPE_BYTES = 96;

/** No room, or no safe place, for the record of another call: it must not go to a provider. */
export class JournalFull extends Error {
  readonly code = "journal_full";
}

export interface JournalWriter<Intent, Outcome> {
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
}

/** Writes lines so that every open intent keeps room for its outcome. */
export function createJournalWriter<
  Intent extends Started,
  Outcome extends Recorded,
>(options: {
  readonly instance: string;
  readonly segments: Segments;
  /** Gets every line that was written. */
  readonly tail: JournalTail<Intent, Outcome>;
  readonly freeText: readonly string[];
  /** Longest intent, in bytes of JSON. */
  readonly intentBytes: number;
  /** Longest line of an outcome, in bytes. */
  readonly reserveBytes: number;
  readonly now: () => number;
  readonly log: JournalLog;
}): JournalWriter<Intent, Outcome> {
  const { segments, tail, freeText, intentBytes, reserveBytes, now, log } =
    options;
  const encoder = createLineEncoder();
  /** The segment of each intent without outcome, by call id. */
  const open = new Map<string, number>();
  /** Outcomes that the disk refused, by call id. Their intents stay open, so their room stays reserved. */
  const refused = new Map<string, Written<Outcome>>();
  let opened = false;
  let problem: string | null = null;
  let refusing = false;

  /** Writes a line for which there is room. */
  function append(bytes: Buffer, line: JournalLine<Intent, Outcome>): void {
    const segment = segments.active();
    const offset = segment.end;
    segments.append(bytes);
    tail.add(segment.number, offset, segment.end, line);
  }

  function writeLine(
    json: string,
    line: JournalLine<Intent, Outcome>,
    reserves: number,
  ): void {
    const bytes = encoder.encode(json);
    if (!segments.reserve(bytes.length, reserves)) {
      throw noRoom();
    }
    try {
      append(bytes, line);
    } catch (error) {
      throw new JournalFull(
        `The journal cannot be written (${messageOf(error)}): free its disk or mend it.`,
        { cause: error },
      );
    }
  }

  function writeIntent(
    { json, record: intent }: Written<Intent>,
    reserves: number,
  ): void {
    const at = now();
    writeLine(`{"intent":${json},"at":${at}}`, { intent, at }, reserves);
  }

  /** Marks the begin of this life before its first intent: all that is open before it is interrupted. */
  function writeOpened(): void {
    const at = now();
    const line = { opened: options.instance, at };
    writeLine(JSON.stringify(line), line, 1);
    opened = true;
  }

  function noRoom(): JournalFull {
    const message =
      "The journal has no room for another call: bring the database back so that it drains, free its disk, or raise its limit.";
    if (!refusing) {
      log.error(situation(), message);
    }
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

  function writeOutcome(
    { json, record: outcome }: Written<Outcome>,
    segment: number,
  ): boolean {
    const at = now();
    const bytes = encoder.encode(
      `{"outcome":${json},"segment":${segment},"at":${at}}`,
    );
    try {
      // The reserve of its own intent is what it uses up.
      if (!segments.reserve(bytes.length, open.size - 1)) {
        return false;
      }
      append(bytes, { outcome, segment, at });
    } catch (error) {
      if (refused.size === 0) {
        log.error(
          { error: messageOf(error) },
          "The journal's disk refuses outcomes: they are kept in memory and tried again.",
        );
      }
      return false;
    }
    open.delete(outcome.id);
    return true;
  }

  function retry(): boolean {
    for (const [id, written] of refused) {
      if (writeOutcome(written, open.get(id) ?? 0)) {
        refused.delete(id);
      }
    }
    return refused.size === 0;
  }

  return {
    intent(record) {
      if (problem !== null) {
        throw new JournalFull(problem);
      }
      if (open.has(record.id)) {
        throw new Error(`Call ${record.id} has an open intent already.`);
      }
      const written = jsonWithin(record, freeText, intentBytes);
      if (written === null) {
        throw new Error(
          `The intent of call ${record.id} is longer than ${intentBytes} bytes even with its free text shortened.`,
        );
      }
      if (!opened) {
        writeOpened();
      }
      writeIntent(written, open.size + 1);
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
      // null only where the fields that are not free text are too long: then it needs room beside the reserves.
      const written = jsonWithin(
        record,
        freeText,
        reserveBytes - ENVELOPE_BYTES,
      ) ?? { json: JSON.stringify(record), record };
      if (writeOutcome(written, segment)) {
        return true;
      }
      refused.set(record.id, written);
      return false;
    },
    retry,
    carry(intents, segment) {
      for (const record of intents) {
        if (open.get(record.id) !== segment || refused.has(record.id)) {
          continue;
        }
        const written = jsonWithin(record, freeText, intentBytes);
        if (written === null) {
          continue;
        }
        try {
          writeIntent(written, open.size);
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
      if (problem !== null) {
        return true;
      }
      if (segments.hasRoom(reserveBytes, open.size + 1)) {
        return false;
      }
      // Asks the disk again, so that a journal without calls finds out that there is room.
      segments.keepSpare(open.size);
      return true;
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
