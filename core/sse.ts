/** One server-sent event; `data` is its data lines joined by newlines. */
export interface SseEvent {
  readonly event: string | null;
  readonly data: string;
}

const SPACE = 0x20;

/** What a line means that is no field of an event; null: nothing. */
type ReadOther = (line: string) => SseEvent | null;

const IGNORED: ReadOther = () => null;

/** An incremental parser of `text/event-stream`. */
export class SseParser {
  readonly #readOther: ReadOther;
  readonly #decoder = new TextDecoder("utf-8");
  /** The start of a line whose end has not arrived. */
  #rest = "";
  #data: string[] = [];
  #dataLength = 0;
  #event: string | null = null;
  #afterCarriageReturn = false;

  constructor(readOther = IGNORED) {
    this.#readOther = readOther;
  }

  /** Characters of the event that is not complete. */
  get unfinished(): number {
    return this.#dataLength + this.#rest.length;
  }

  /** Events completed by these bytes; any chunking gives the same events. */
  push(chunk: Uint8Array): readonly SseEvent[] {
    return this.#takeText(this.#decoder.decode(chunk, { stream: true }));
  }

  /** An event that the end of the stream cut off before its blank line. */
  end(): readonly SseEvent[] {
    const events = this.#takeText(this.#decoder.decode());
    if (this.#rest !== "") {
      this.#takeLine(this.#rest, events);
    }
    this.#rest = "";
    this.#takeLine("", events);
    return events;
  }

  #takeText(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let from = 0;
    // A line feed at the start may belong to the carriage return that ended the previous text.
    if (this.#afterCarriageReturn && text.startsWith("\n")) {
      from = 1;
    }
    if (text !== "") {
      this.#afterCarriageReturn = false;
    }
    let lineFeed = text.indexOf("\n", from);
    let carriageReturn = text.indexOf("\r", from);
    for (;;) {
      const at =
        lineFeed < 0 || carriageReturn < 0
          ? Math.max(lineFeed, carriageReturn)
          : Math.min(lineFeed, carriageReturn);
      if (at < 0) {
        break;
      }
      this.#takeLine(this.#rest + text.slice(from, at), events);
      this.#rest = "";
      from = at + 1;
      if (at === carriageReturn) {
        this.#afterCarriageReturn = from === text.length;
        from += lineFeed === from ? 1 : 0;
        carriageReturn = text.indexOf("\r", from);
      }
      if (lineFeed >= 0 && lineFeed < from) {
        lineFeed = text.indexOf("\n", from);
      }
    }
    this.#rest += text.slice(from);
    return events;
  }

  #takeLine(line: string, events: SseEvent[]): void {
    if (line === "") {
      if (this.#data.length > 0) {
        events.push({ event: this.#event, data: this.#data.join("\n") });
      }
      this.#data = [];
      this.#dataLength = 0;
      this.#event = null;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const start =
      colon < 0
        ? line.length
        : line.charCodeAt(colon + 1) === SPACE
          ? colon + 2
          : colon + 1;
    if (field === "data") {
      this.#data.push(line.slice(start));
      this.#dataLength += line.length;
    } else if (field === "event") {
      this.#event = line.slice(start);
    } else {
      const other = this.#readOther(line);
      if (other !== null) {
        events.push(other);
      }
    }
  }
}
