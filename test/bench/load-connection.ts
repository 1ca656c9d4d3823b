import { createConnection } from "node:net";

/** One answer, as far as a load generator needs it. Times in ms of `performance.now()`. */
export interface Answer {
  readonly status: number;
  readonly cacheHit: boolean;
  /** From when the call's time counts. */
  readonly since: number;
  readonly firstByteAt: number;
  readonly endedAt: number;
  /** The beginning of the body where the status is not 200. */
  readonly text: string;
}

export interface Connection {
  send(request: Buffer, since: number): void;
  close(): void;
}

export interface ConnectionEvents {
  readonly onAnswer: (answer: Answer) => void;
  /** The connection ended while an answer was due, or could not be made. */
  readonly onBroken: (reason: string) => void;
  /** The server closed it between two calls. */
  readonly onIdleEnd: () => void;
}

type Place =
  "head" | "counted body" | "chunk size" | "chunk" | "end of chunk" | "trailer";

const HEAD_END = "\r\n\r\n";
const NEWLINE = 0x0a;
const KEPT_TEXT = 500;

/**
 * One kept HTTP/1.1 connection, one call at a time, on a bare socket: the generator shares the cores with what it
 * measures, so it reads no more of an answer than where it ends.
 */
export function connect(port: number, events: ConnectionEvents): Connection {
  const socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
  let due = false;
  let since = 0;
  let place: Place = "head";
  let head = "";
  let left = 0;
  let line = "";
  let status = 0;
  let cacheHit = false;
  let firstByteAt = 0;
  let text = "";

  function readHead(bytes: Buffer, from: number): number {
    const before = head.length;
    head += bytes.toString("latin1", from);
    const end = head.indexOf(HEAD_END);
    if (end < 0) {
      return bytes.length;
    }
    const next = from + end + HEAD_END.length - before;
    head = head.slice(0, end + 2).toLowerCase();
    status = Number(head.slice(9, 12));
    cacheHit = head.includes("\r\nx-hearth-cache: hit\r\n");
    const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
    head = "";
    firstByteAt = 0;
    text = "";
    if (length === undefined) {
      place = "chunk size";
      return next;
    }
    left = Number(length);
    place = "counted body";
    if (left === 0) {
      ended();
    }
    return next;
  }

  function readBody(bytes: Buffer, from: number): number {
    const until = Math.min(bytes.length, from + left);
    if (firstByteAt === 0) {
      firstByteAt = performance.now();
    }
    if (status !== 200 && text.length < KEPT_TEXT) {
      text += bytes.toString("latin1", from, until);
    }
    left -= until - from;
    if (left > 0) {
      return until;
    }
    if (place === "counted body") {
      ended();
    } else {
      place = "end of chunk";
    }
    return until;
  }

  /** Reads up to the end of a line; null until it is all there. */
  function readLine(bytes: Buffer, from: number): [string | null, number] {
    const end = bytes.indexOf(NEWLINE, from);
    line += bytes.toString("latin1", from, end < 0 ? bytes.length : end);
    if (end < 0) {
      return [null, bytes.length];
    }
    const whole = line.trimEnd();
    line = "";
    return [whole, end + 1];
  }

  function readFraming(bytes: Buffer, from: number): number {
    const [whole, next] = readLine(bytes, from);
    if (whole === null) {
      return next;
    }
    if (place === "chunk size") {
      left = parseInt(whole, 16);
      place = left === 0 ? "trailer" : "chunk";
    } else if (place === "end of chunk") {
      place = "chunk size";
    } else if (whole === "") {
      ended();
    }
    return next;
  }

  function ended(): void {
    place = "head";
    due = false;
    const endedAt = performance.now();
    events.onAnswer({
      status,
      cacheHit,
      since,
      firstByteAt: firstByteAt === 0 ? endedAt : firstByteAt,
      endedAt,
      text,
    });
  }

  socket.on("data", (bytes: Buffer) => {
    for (let at = 0; at < bytes.length;) {
      if (place === "head") {
        at = readHead(bytes, at);
      } else if (place === "counted body" || place === "chunk") {
        at = readBody(bytes, at);
      } else {
        at = readFraming(bytes, at);
      }
    }
  });
  let reason = "the connection was closed before the answer ended";
  socket.on("error", (error) => {
    reason = error.message;
  });
  socket.on("close", () => {
    if (due) {
      events.onBroken(reason);
    } else {
      events.onIdleEnd();
    }
  });

  return {
    send(request, at) {
      due = true;
      since = at;
      socket.write(request);
    },
    close() {
      due = false;
      socket.destroy();
    },
  };
}
