/** One server-sent event; `data` is its data lines joined by newlines. */
export interface SseEvent {
  readonly event: string | null;
  readonly data: string;
}

export interface SseParser {
  /** Events completed by these bytes; any chunking gives the same events. */
  push(chunk: Uint8Array): readonly SseEvent[];
  /** An event that the end of the stream cut off before its blank line. */
  end(): readonly SseEvent[];
}

/** An incremental parser of `text/event-stream`. */
export function createSseParser(): SseParser {
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  let data: string[] = [];
  let event: string | null = null;
  let afterCarriageReturn = false;

  function takeLine(line: string, events: SseEvent[]): void {
    if (line === "") {
      if (data.length > 0) {
        events.push({ event, data: data.join("\n") });
      }
      data = [];
      event = null;
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
        : line.charCodeAt(colon + 1) === 0x20
          ? colon + 2
          : colon + 1;
    if (field === "data") {
      data.push(line.slice(start));
    } else if (field === "event") {
      event = line.slice(start);
    }
  }

  function takeText(text: string): readonly SseEvent[] {
    const events: SseEvent[] = [];
    let from = 0;
    // A line feed that begins this text may belong to a carriage return that ended the last one.
    if (afterCarriageReturn && text.startsWith("\n")) {
      from = 1;
    }
    if (text !== "") {
      afterCarriageReturn = false;
    }
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code !== 0x0a && code !== 0x0d) {
        continue;
      }
      takeLine(rest + text.slice(from, at), events);
      rest = "";
      if (code === 0x0d) {
        if (at + 1 === text.length) {
          afterCarriageReturn = true;
        } else if (text.charCodeAt(at + 1) === 0x0a) {
          at++;
        }
      }
      from = at + 1;
    }
    rest += text.slice(from);
    return events;
  }

  return {
    push: (chunk) => takeText(decoder.decode(chunk, { stream: true })),
    end() {
      const events = [...takeText(decoder.decode())];
      if (rest !== "") {
        takeLine(rest, events);
      }
      rest = "";
      takeLine("", events);
      return events;
    },
  };
}
