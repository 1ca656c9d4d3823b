/** One server-sent event; `data` is its data lines joined by newlines. */
export interface SseEvent {
  readonly event: string | null;
  readonly data: string;
}

const SPACE = 0x20;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** An incremental parser of `text/event-stream`. */
export class SseParser {
  readonly #decoder = new TextDecoder("utf-8");
  /** The start of a line whose end has not arrived. */
  #rest = "";
  #data: string[] = [];
  #event: string | null = null;
  #afterCarriageReturn = false;

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
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code !== LINE_FEED && code !== CARRIAGE_RETURN) {
        continue;
      }
      this.#takeLine(this.#rest + text.slice(from, at), events);
      this.#rest = "";
      if (code === CARRIAGE_RETURN) {
        if (at + 1 === text.length) {
          this.#afterCarriageReturn = true;
        } else if (text.charCodeAt(at + 1) === LINE_FEED) {
          at++;
        }
      }
      from = at + 1;
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
    } else if (field === "event") {
      this.#event = line.slice(start);
    }
  }
}
