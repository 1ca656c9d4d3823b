import { createConnection, type Socket } from "node:net";

/** The parts of a response that a load generator needs. Times in ms of `performance.now()`. */
export interface Answer {
  readonly status: number;
  readonly cacheHit: boolean;
  /** When the call was due: the start of its latency. */
  readonly since: number;
  /** When it was sent; later than due if the generator was late. */
  readonly sentAt: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  /** The start of the body if the status is not 200. */
  readonly text: string;
}

export interface Connection {
  send(request: Buffer, since: number): void;
  close(): void;
}

interface ConnectionEvents {
  readonly onAnswer: (answer: Answer) => void;
  /** The connection failed, or ended during a response. */
  readonly onBroken: (reason: string) => void;
  /** The server closed the connection between two calls. */
  readonly onIdleEnd: () => void;
}

type Place =
  "head" | "counted body" | "chunk size" | "chunk" | "end of chunk" | "trailer";

const HEAD_END = "\r\n\r\n";
const NEWLINE = 0x0a;
const MAX_TEXT = 500;

/**
 * Opens an HTTP/1.1 connection with keep-alive for one call at a time. It uses a bare socket and parses only what is needed to
 * find the end of a response, because the generator shares the cores with the measured program.
 */
export function connect(port: number, events: ConnectionEvents): Connection {
  return new LoadConnection(port, events);
}

class LoadConnection implements Connection {
  readonly #events: ConnectionEvents;
  readonly #socket: Socket;
  #due = false;
  #since = 0;
  #sentAt = 0;
  #place: Place = "head";
  #head = "";
  #left = 0;
  #line = "";
  #status = 0;
  #cacheHit = false;
  #firstByteAt = 0;
  #text = "";
  #reason = "the connection was closed before the answer ended";

  constructor(port: number, events: ConnectionEvents) {
    this.#events = events;
    this.#socket = createConnection({ host: "127.0.0.1", port, noDelay: true });

    this.#socket.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length;) {
        if (this.#place === "head") {
          at = this.#readHead(bytes, at);
        } else if (this.#place === "counted body" || this.#place === "chunk") {
          at = this.#readBody(bytes, at);
        } else {
          at = this.#readFraming(bytes, at);
        }
      }
    });

    this.#socket.on("error", (error) => {
      this.#reason = error.message;
    });

    this.#socket.on("close", () => {
      if (this.#due) {
        this.#events.onBroken(this.#reason);
      } else {
        this.#events.onIdleEnd();
      }
    });
  }

  send(request: Buffer, at: number): void {
    this.#due = true;
    this.#since = at;
    this.#sentAt = performance.now();
    this.#socket.write(request);
  }

  close(): void {
    this.#due = false;
    this.#socket.destroy();
  }

  #readHead(bytes: Buffer, from: number): number {
    const before = this.#head.length;
    this.#head += bytes.toString("latin1", from);
    const end = this.#head.indexOf(HEAD_END);
    if (end < 0) {
      return bytes.length;
    }
    const next = from + end + HEAD_END.length - before;
    this.#head = this.#head.slice(0, end + 2).toLowerCase();
    this.#status = Number(this.#head.slice(9, 12));
    this.#cacheHit = this.#head.includes("\r\nx-hearth-cache: hit\r\n");
    const length = /\r\ncontent-length: *(\d+)/.exec(this.#head)?.[1];
    this.#head = "";
    this.#firstByteAt = 0;
    this.#text = "";
    if (length === undefined) {
      this.#place = "chunk size";
      return next;
    }
    this.#left = Number(length);
    this.#place = "counted body";
    if (this.#left === 0) {
      this.#ended();
    }
    return next;
  }

  #readBody(bytes: Buffer, from: number): number {
    const until = Math.min(bytes.length, from + this.#left);
    if (this.#firstByteAt === 0) {
      this.#firstByteAt = performance.now();
    }
    if (this.#status !== 200 && this.#text.length < MAX_TEXT) {
      this.#text += bytes.toString("latin1", from, until);
    }
    this.#left -= until - from;
    if (this.#left > 0) {
      return until;
    }
    if (this.#place === "counted body") {
      this.#ended();
    } else {
      this.#place = "end of chunk";
    }
    return until;
  }

  /** Reads up to the end of a line; null while it is incomplete. */
  #readLine(bytes: Buffer, from: number): [string | null, number] {
    const end = bytes.indexOf(NEWLINE, from);
    this.#line += bytes.toString("latin1", from, end < 0 ? bytes.length : end);
    if (end < 0) {
      return [null, bytes.length];
    }
    const whole = this.#line.trimEnd();
    this.#line = "";
    return [whole, end + 1];
  }

  #readFraming(bytes: Buffer, from: number): number {
    const [whole, next] = this.#readLine(bytes, from);
    if (whole === null) {
      return next;
    }
    if (this.#place === "chunk size") {
      this.#left = parseInt(whole, 16);
      this.#place = this.#left === 0 ? "trailer" : "chunk";
    } else if (this.#place === "end of chunk") {
      this.#place = "chunk size";
    } else if (whole === "") {
      this.#ended();
    }
    return next;
  }

  #ended(): void {
    this.#place = "head";
    this.#due = false;
    const endedAt = performance.now();
    this.#events.onAnswer({
      status: this.#status,
      cacheHit: this.#cacheHit,
      since: this.#since,
      sentAt: this.#sentAt,
      firstByteAt: this.#firstByteAt === 0 ? endedAt : this.#firstByteAt,
      endedAt,
      text: this.#text,
    });
  }
}
