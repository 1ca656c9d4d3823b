import type { StreamPiece } from "../providers/wire.ts";
import type { CallGuards } from "./call-guards.ts";
import { checkRemotely, checkTexts, findIn } from "./check-texts.ts";
import { mask } from "./mask.ts";
import { readEvent, type ReadEvent } from "./deltas.ts";
import type { Finding, Guard, Subject } from "./guard.ts";
import { sum } from "../../core/sum.ts";

/** Characters before a window that expressions see: `\b` at its start is decided by what was sent. */
const CONTEXT = 64;
/** Windows held back for a single finding, after which it is masked although it may continue. */
const MAX_WINDOWS = 50;
/** Of an event's data: so many count like a character of its text, as events without any are held back, too. */
const DATA_PER_CHARACTER = 1_024;

/** One text of a stream, as far as its events are held back. */
interface Channel {
  /** The end of what was sent. */
  readonly context: string;
  readonly text: string;
  /** Nothing more is expected of it. */
  readonly isOver: boolean;
  readonly found: readonly Finding[];
}

type Channels = ReadonlyMap<string, Channel>;

/**
 * Holds the events of a stream back until guardrails have checked them, window by window. The last `streamWindow` characters of
 * each text stay held until more has arrived: what is not longer is found wherever the provider cuts its chunks, and is masked
 * or blocked before any of it is sent.
 */
export class StreamCheck {
  readonly #run: CallGuards;
  readonly #guards: readonly Guard[];
  readonly #subject: Subject;
  readonly #window: number;
  readonly #contexts = new Map<string, string>();
  /** Events repeat whole texts; each is checked once. */
  readonly #wholes = new Map<string, string>();
  #held: ReadEvent[] = [];
  #unchecked = 0;

  constructor(run: CallGuards, guards: readonly Guard[], subject: Subject) {
    this.#run = run;
    this.#guards = guards;
    this.#subject = subject;
    this.#window = Math.max(...guards.map(({ config }) => config.streamWindow));
  }

  /**
   * The events that may be sent now; all of them with `isEnd`, and with the one that ends the stream. Throws the error that
   * ends it when a guardrail blocks it or is unavailable.
   */
  async push(
    pieces: readonly StreamPiece[],
    isEnd = false,
  ): Promise<readonly StreamPiece[]> {
    const events = pieces.map(readEvent);
    this.#held.push(...events);
    this.#unchecked += sum(events.map(sizeOf));
    const last =
      isEnd || pieces.some(({ kind }) => kind === "done" || kind === "error");
    if (!last && this.#unchecked < this.#window) {
      return this.#releaseTextless();
    }
    this.#unchecked = 0;
    return this.#release(last);
  }

  /** Events without text pass at once when none with text is before them. */
  #releaseTextless(): readonly StreamPiece[] {
    const first = this.#held.findIndex(
      ({ deltas, wholes }) =>
        deltas.length > 0 || wholes.some((text) => text !== ""),
    );
    return this.#held
      .splice(0, first < 0 ? this.#held.length : first)
      .map(({ piece }) => piece);
  }

  async #release(isEnd: boolean): Promise<readonly StreamPiece[]> {
    const channels = await this.#find(channelsOf(this.#held, this.#contexts));
    const count = isEnd
      ? this.#held.length
      : releasable(this.#held, channels, this.#window);
    const released = this.#held.slice(0, count);
    const kept = this.#held.slice(count);
    const texts = await this.#checkReleased(released, channels, kept);
    this.#held = texts.kept;
    return this.#write(released, texts.byChannel);
  }

  async #find(channels: Channels): Promise<Channels> {
    const names = [...channels.keys()];
    const all = [...channels.values()];
    const found = await findIn(
      this.#run,
      this.#guards,
      all.map(({ context, text }) => context + text),
      this.#subject.inputType,
      all.map(({ context }) => context.length),
    );
    return new Map(
      all.map((channel, at) => [
        names[at] ?? "",
        { ...channel, found: shifted(found[at] ?? [], channel.context.length) },
      ]),
    );
  }

  /** The text of each channel to send with the released events, and the events kept, emptied where their text is sent too. */
  async #checkReleased(
    released: readonly ReadEvent[],
    channels: Channels,
    kept: ReadEvent[],
  ): Promise<{
    readonly byChannel: ReadonlyMap<string, string>;
    readonly kept: ReadEvent[];
  }> {
    const byChannel = new Map<string, string>();
    const sentAhead = new Set<string>();
    const lengths = lengthsOf(released);
    for (const [name, { text, context, found }] of channels) {
      const length = lengths.get(name) ?? 0;
      if (length === 0) {
        continue;
      }
      const head = mask(
        text.slice(0, length),
        found.filter(({ start }) => start < length),
      );
      const tail = mask(
        text.slice(length),
        shifted(
          found.filter(({ start }) => start >= length),
          length,
        ),
      );
      const checked = await this.#checkWindow(head + tail);
      if (checked.endsWith(tail)) {
        byChannel.set(name, checked.slice(0, checked.length - tail.length));
      } else {
        // A service changed what is still held: its text is sent as a whole.
        byChannel.set(name, checked);
        sentAhead.add(name);
      }
      const before = context + text.slice(0, length);
      this.#contexts.set(name, before.slice(-CONTEXT));
    }
    return {
      byChannel,
      kept:
        sentAhead.size === 0
          ? kept
          : kept.map((event) => withoutChannels(event, sentAhead)),
    };
  }

  async #checkWindow(text: string): Promise<string> {
    let checked = text;
    for (const guard of this.#guards) {
      const [after] = await checkRemotely(
        this.#run,
        guard,
        [checked],
        this.#subject,
      );
      checked = after ?? checked;
    }
    return checked;
  }

  /** The first event of a channel takes all of its text if a guardrail changed it; else events stay as they were. */
  async #write(
    released: readonly ReadEvent[],
    byChannel: ReadonlyMap<string, string>,
  ): Promise<readonly StreamPiece[]> {
    const original = textsByChannel(released);
    const started = new Set<string>();
    const pieces: StreamPiece[] = [];
    for (const event of released) {
      const wholes = await this.#checkWholes(event.wholes);
      const deltas = event.deltas.map(({ channel, text }) => {
        const changed = byChannel.get(channel);
        if (changed === undefined || changed === original.get(channel)) {
          return text;
        }
        const isFirst = !started.has(channel);
        started.add(channel);
        return isFirst ? changed : "";
      });
      const isSame =
        wholes.every((text, at) => text === event.wholes[at]) &&
        deltas.every((text, at) => text === event.deltas[at]?.text);
      pieces.push(isSame ? event.piece : event.write(deltas, wholes));
    }
    return pieces;
  }

  async #checkWholes(texts: readonly string[]): Promise<readonly string[]> {
    const fresh = texts.filter(
      (text) => text !== "" && !this.#wholes.has(text),
    );
    if (fresh.length > 0) {
      const { content } = await checkTexts(
        this.#run,
        this.#guards,
        { content: fresh, other: [] },
        this.#subject,
      );
      for (const [at, text] of fresh.entries()) {
        this.#wholes.set(text, content[at] ?? "");
      }
    }
    return texts.map((text) => this.#wholes.get(text) ?? text);
  }
}

function shifted(found: readonly Finding[], by: number): readonly Finding[] {
  return found.map((one) => ({
    ...one,
    start: one.start - by,
    end: one.end - by,
  }));
}

function textsByChannel(
  events: readonly ReadEvent[],
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { channel, text } of events.flatMap(({ deltas }) => deltas)) {
    texts.set(channel, (texts.get(channel) ?? "") + text);
  }
  return texts;
}

function lengthsOf(events: readonly ReadEvent[]): ReadonlyMap<string, number> {
  return new Map(
    [...textsByChannel(events)].map(([name, text]) => [name, text.length]),
  );
}

/** The texts of the events that are held back. */
function channelsOf(
  held: readonly ReadEvent[],
  contexts: ReadonlyMap<string, string>,
): Channels {
  const texts = textsByChannel(held);
  const latest = new Map<string, string>();
  const open = new Set<string>();
  for (const { deltas, endsTexts } of held) {
    if (endsTexts) {
      open.clear();
    }
    for (const { channel, group } of deltas) {
      open.delete(latest.get(group) ?? "");
      latest.set(group, channel);
      open.add(channel);
    }
  }
  return new Map(
    [...texts].map(([name, text]) => [
      name,
      {
        text,
        context: contexts.get(name) ?? "",
        isOver: !open.has(name),
        found: [],
      },
    ]),
  );
}

/** How many of the events held back may be sent: behind them a window of each text remains, and no finding is cut. */
function releasable(
  held: readonly ReadEvent[],
  channels: Channels,
  window: number,
): number {
  const positions = new Map<string, number>();
  let count = 0;
  for (const [at, { deltas }] of held.entries()) {
    for (const { channel, text } of deltas) {
      positions.set(channel, (positions.get(channel) ?? 0) + text.length);
    }
    const isWithin = deltas.every(({ channel }) =>
      isFree(channels.get(channel), positions.get(channel) ?? 0, window),
    );
    if (!isWithin) {
      break;
    }
    const cutsNone = [...positions].every(([channel, position]) =>
      (channels.get(channel)?.found ?? []).every(
        ({ start, end }) => position <= start || position >= end,
      ),
    );
    if (cutsNone) {
      count = at + 1;
    }
  }
  return count === 0 && sum(held.map(sizeOf)) > MAX_WINDOWS * window
    ? held.length
    : count;
}

/** In characters. */
function sizeOf({ piece, deltas }: ReadEvent): number {
  return Math.max(
    sum(deltas.map(({ text }) => text.length)),
    Math.ceil(piece.data.length / DATA_PER_CHARACTER),
  );
}

function isFree(
  channel: Channel | undefined,
  position: number,
  window: number,
): boolean {
  return (
    channel === undefined ||
    channel.isOver ||
    position <= channel.text.length - window
  );
}

function withoutChannels(
  event: ReadEvent,
  channels: ReadonlySet<string>,
): ReadEvent {
  if (!event.deltas.some(({ channel }) => channels.has(channel))) {
    return event;
  }
  const texts = event.deltas.map(({ channel, text }) =>
    channels.has(channel) ? "" : text,
  );
  return readEvent(event.write(texts, event.wholes));
}
