import { textOf } from "../../core/failure.ts";
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

interface WriterOptions<Intent, Outcome> {
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
}

/** Writes lines so that every open intent keeps room for its outcome. */
export class JournalWriter<Intent extends Started, Outcome extends Recorded> {
  readonly #instance: string;
  readonly #segments: Segments;
  readonly #tail: JournalTail<Intent, Outcome>;
  readonly #freeText: readonly string[];
  readonly #intentBytes: number;
  readonly #reserveBytes: number;
  readonly #now: () => number;
  readonly #log: JournalLog;
  readonly #encoder = createLineEncoder();
  /** The segment of each intent without outcome, by call id. */
  readonly #open = new Map<string, number>();
  /** Outcomes that could not be written, by call id. Their intents stay open, so their room stays reserved. */
  readonly #refused = new Map<string, Written<Outcome>>();
  #opened = false;
  #problem: string | null = null;
  #refusing = false;
  /** The last line could not be written. */
  #writeFailed = false;

  constructor(options: WriterOptions<Intent, Outcome>) {
    this.#instance = options.instance;
    this.#segments = options.segments;
    this.#tail = options.tail;
    this.#freeText = options.freeText;
    this.#intentBytes = options.intentBytes;
    this.#reserveBytes = options.reserveBytes;
    this.#now = options.now;
    this.#log = options.log;
  }

  intent(record: Intent): void {
    const written = this.#newIntent(record);
    this.#writeIntent(written, this.#open.size + 1);
    this.#open.set(record.id, this.#segments.active().number);
    this.#hadRoom();
  }

  /** Writes a call that is over before anything was sent for it, with one write. */
  record(intent: Intent, outcome: Outcome): void {
    const opening = this.#newIntent(intent);
    const ending = this.#outcomeJson(outcome);
    const at = this.#now();
    const first = this.#encoder.encode(intentLine(opening, at)).length;
    const most = first + 3 * ending.json.length + ENVELOPE_BYTES;
    if (!this.#segments.reserve(most, this.#open.size)) {
      throw this.#noRoom();
    }
    const { number: segment, end: start } = this.#segments.active();
    const lines = this.#encoder.encode(outcomeLine(ending, segment, at), first);
    try {
      this.#segments.append(lines);
    } catch (error) {
      throw this.#unwritable(error);
    }
    const middle = start + first;
    this.#tail.add(segment, start, middle, { intent: opening.record, at });
    this.#tail.add(segment, middle, start + lines.length, {
      outcome: ending.record,
      segment,
      at,
    });
    this.#hadRoom();
  }

  /** Writes an open intent again: readers take the latest line of a call. */
  amend(record: Intent): void {
    if (this.#problem !== null) {
      throw new JournalFull(this.#problem);
    }
    if (!this.#open.has(record.id) || this.#refused.has(record.id)) {
      throw new Error(`Call ${record.id} has no open intent to amend.`);
    }
    this.#writeIntent(this.#intentJson(record), this.#open.size);
    this.#open.set(record.id, this.#segments.active().number);
    this.#segments.keepSpare(this.#open.size);
  }

  /** False when the line could not be written: it is kept in memory until `retry`. */
  outcome(record: Outcome): boolean {
    const segment = this.#open.get(record.id);
    if (segment === undefined || this.#refused.has(record.id)) {
      this.#log.error(
        { id: record.id },
        "An outcome without an open intent was not written to the journal.",
      );
      return true;
    }
    const written = this.#outcomeJson(record);
    if (this.#writeOutcome(written, segment)) {
      return true;
    }
    this.#refused.set(record.id, written);
    return false;
  }

  /** Retries the outcomes that could not be written; false when some still cannot. */
  retry(): boolean {
    for (const [id, written] of this.#refused) {
      if (this.#writeOutcome(written, this.#open.get(id) ?? 0)) {
        this.#refused.delete(id);
      }
    }
    return this.#refused.size === 0;
  }

  /** Writes the open intents of `segment` again, so that it can be deleted. */
  carry(intents: Iterable<Intent>, segment: number): void {
    for (const record of intents) {
      if (
        this.#open.get(record.id) !== segment ||
        this.#refused.has(record.id)
      ) {
        continue;
      }
      const written = jsonWithin(record, this.#freeText, this.#intentBytes);
      if (written === null) {
        continue;
      }
      try {
        this.#writeIntent(written, this.#open.size);
      } catch {
        // No room: the old segment stays until the call ends.
        return;
      }
      this.#open.set(record.id, this.#segments.active().number);
    }
  }

  /** Rejects all further intents, for this reason. */
  fail(reason: string): void {
    this.#problem ??= reason;
  }

  problem(): string | null {
    return this.#problem;
  }

  openIntents(): number {
    return this.#open.size;
  }

  /** Whether an intent of ordinary length would be rejected. */
  full(): boolean {
    if (this.#problem !== null) {
      return true;
    }
    // Here and below the disk is asked again, so that a journal without calls notices that it was repaired or has room.
    this.#writeFailed &&= !this.#segments.takesWrites();
    if (this.#writeFailed) {
      return true;
    }
    if (this.#segments.hasRoom(this.#reserveBytes, this.#open.size + 1)) {
      return false;
    }
    this.#segments.keepSpare(this.#open.size);
    return true;
  }

  /** What an intent needs, for a call that has none. */
  #newIntent(record: Intent): Written<Intent> {
    if (this.#problem !== null) {
      throw new JournalFull(this.#problem);
    }
    if (this.#open.has(record.id)) {
      throw new Error(`Call ${record.id} already has an open intent.`);
    }
    const written = this.#intentJson(record);
    if (!this.#opened) {
      this.#writeOpened();
    }
    return written;
  }

  #hadRoom(): void {
    this.#writeFailed = false;
    if (this.#refusing) {
      this.#refusing = false;
      this.#log.info(this.#situation(), "The journal takes calls again.");
    }
    this.#segments.keepSpare(this.#open.size);
  }

  /** Writes a line for which there is room. */
  #append(bytes: Buffer, line: JournalLine<Intent, Outcome>): void {
    const segment = this.#segments.active();
    const offset = segment.end;
    this.#segments.append(bytes);
    this.#tail.add(segment.number, offset, segment.end, line);
  }

  #writeLine(
    json: string,
    line: JournalLine<Intent, Outcome>,
    reserves: number,
  ): void {
    const bytes = this.#encoder.encode(json);
    if (!this.#segments.reserve(bytes.length, reserves)) {
      throw this.#noRoom();
    }
    try {
      this.#append(bytes, line);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  /** As long as the room of an outcome, unless the fields that are not free text are longer: then it needs more. */
  #outcomeJson(record: Outcome): Written<Outcome> {
    return (
      jsonWithin(
        record,
        this.#freeText,
        this.#reserveBytes - ENVELOPE_BYTES,
      ) ?? { json: JSON.stringify(record), record }
    );
  }

  #intentJson(record: Intent): Written<Intent> {
    const written = jsonWithin(record, this.#freeText, this.#intentBytes);
    if (written === null) {
      throw new Error(
        `The intent of call ${record.id} is longer than ${this.#intentBytes} bytes even with its free text shortened.`,
      );
    }
    return written;
  }

  #writeIntent(written: Written<Intent>, reserves: number): void {
    const at = this.#now();
    const line = { intent: written.record, at };
    this.#writeLine(intentLine(written, at), line, reserves);
  }

  /** Marks the start of this process before its first intent: all earlier open intents are interrupted. */
  #writeOpened(): void {
    const at = this.#now();
    const line = { opened: this.#instance, at };
    this.#writeLine(JSON.stringify(line), line, 1);
    this.#opened = true;
  }

  #noRoom(): JournalFull {
    return this.#refuse(
      "The journal is full: reconnect the database so that it drains, free disk space, or raise its limit.",
    );
  }

  #unwritable(error: unknown): JournalFull {
    this.#writeFailed = true;
    return this.#refuse(
      `The journal cannot be written (${textOf(error)}): free or repair its disk.`,
      { cause: error },
    );
  }

  #refuse(message: string, options?: ErrorOptions): JournalFull {
    if (!this.#refusing) {
      this.#log.error(this.#situation(), message);
    }
    this.#refusing = true;
    return new JournalFull(message, options);
  }

  #situation(): object {
    return {
      openIntents: this.#open.size,
      segments: this.#segments.list.length,
      usedBytes: this.#segments.usedBytes(),
    };
  }

  #writeOutcome(written: Written<Outcome>, segment: number): boolean {
    const { record: outcome } = written;
    const at = this.#now();
    const bytes = this.#encoder.encode(outcomeLine(written, segment, at));
    try {
      // An outcome uses the reserve of its intent.
      if (!this.#segments.reserve(bytes.length, this.#open.size - 1)) {
        return false;
      }
      this.#append(bytes, { outcome, segment, at });
    } catch (error) {
      this.#writeFailed = true;
      if (this.#refused.size === 0) {
        this.#log.error(
          { error: textOf(error) },
          "Outcomes cannot be written to the journal: they are kept in memory and retried.",
        );
      }
      return false;
    }
    this.#open.delete(outcome.id);
    return true;
  }
}

function intentLine({ json }: Written<unknown>, at: number): string {
  return `{"intent":${json},"at":${at}}`;
}

function outcomeLine(
  { json }: Written<unknown>,
  segment: number,
  at: number,
): string {
  return `{"outcome":${json},"segment":${segment},"at":${at}}`;
}
