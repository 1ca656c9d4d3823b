import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { SseParser, type SseEvent } from "../../../core/sse.ts";
import type { Bodies } from "../../http/bodies.ts";
import { CallError } from "../../http/errors.ts";
import { parseRecord, recordOf, type JsonRecord } from "../../../core/json.ts";
import {
  callErrorFrame,
  errorFrame,
  eventFrame,
  readFrame,
  steerFailedFrame,
  type ClientFrame,
} from "./frames.ts";
import type { RememberedStreams } from "./memory.ts";
import { SocketStreams, type SocketStream, type Waiting } from "./streams.ts";
import { Turn } from "./turn.ts";

/** The answer of the request that carries a turn out. */
interface TurnAnswer {
  readonly statusCode: number;
  readonly headers: JsonRecord;
  stream(): Readable;
}

/** Sends a turn through all steps of a call of POST /v1/responses. `headers` name it. */
export type CarryOut = (
  message: Buffer,
  headers: Readonly<Record<string, string>>,
) => Promise<TurnAnswer>;

interface SocketPorts {
  /** Names the key whose bodies its messages are. */
  readonly key: string;
  readonly bodies: Bodies;
  /** In which a message must arrive, from its first part to its last. */
  readonly arrivalMs: number;
  readonly log: Logger;
  /** A client that reads nothing for so long is disconnected, as it holds limits; 0: never. */
  idleMs(): number;
}

/** Sent to a client before it has read what was sent earlier. */
const MAX_UNREAD_BYTES = 65_536;
/** For a close that the client cannot confirm. */
const UNREAD_CLOSE_MS = 1_000;
/** Of a ping or pong from a client, before its data: RFC 6455, 5.2 and 5.5. */
const CONTROL_HEAD_BYTES = 6;
/** Close codes of RFC 6455. */
const CLOSE = {
  unsupported: 1003,
  stalled: 1008,
  restart: 1012,
  tryAgainLater: 1013,
} as const;

/** One WebSocket of a client: a call for each `response.create`, whose events are sent as messages. */
export class ResponseSocket {
  readonly #socket: WebSocket;
  readonly #ports: SocketPorts;
  readonly #memory: RememberedStreams;
  readonly #carryOut: CarryOut;
  readonly #streams = new SocketStreams();
  #isEnding = false;
  #usedAt = performance.now();
  /** Received of a message that is not whole, and since when. */
  #unfinished = { bytes: 0, since: 0 };

  constructor(
    socket: WebSocket,
    connection: Socket,
    ports: SocketPorts,
    memory: RememberedStreams,
    carryOut: CarryOut,
  ) {
    this.#socket = socket;
    this.#ports = ports;
    this.#memory = memory;
    this.#carryOut = carryOut;
    // The parts of a message are kept until it is whole, which the last one makes it at once.
    connection.prependListener("data", (part: Buffer) => this.#count(part));
    socket.on("message", (data: Buffer, isBinary) => {
      this.#receive(data, isBinary);
    });
    socket.on("ping", (data: Buffer) => this.#dropControl(data));
    socket.on("pong", (data: Buffer) => this.#dropControl(data));
    // It is closed with the code that says why.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#closed());
  }

  /** Finishes the calls in progress, and closes then. */
  end(): void {
    this.#isEnding = true;
    this.#dropWaiting();
    this.#closeIfEnded();
  }

  /**
   * Closes it if it was not used for `idleMs`, or a message stays unfinished: it would hold its memory for good. Otherwise a ping
   * keeps it open on its way. No answer to it is expected: some clients read only during a turn.
   */
  probe(now: number, idleMs: number): void {
    const { bytes, since } = this.#unfinished;
    if (bytes > 0 && now - since >= this.#ports.arrivalMs) {
      this.#closeUnread(CLOSE.stalled, "The message took too long to arrive.");
    } else if (
      this.#streams.inProgress.length === 0 &&
      now - this.#usedAt >= idleMs
    ) {
      this.#socket.close(1000, "Idle: open another WebSocket to continue.");
    } else {
      this.#socket.ping();
    }
  }

  #count(part: Buffer): void {
    if (this.#socket.readyState !== this.#socket.OPEN) {
      return;
    }
    const { bytes, since } = this.#unfinished;
    this.#unfinished = {
      bytes: bytes + part.length,
      since: bytes === 0 ? performance.now() : since,
    };
    try {
      const { key, bodies } = this.#ports;
      bodies.reserveChunk(key, this, part);
    } catch (error) {
      this.#reject(error, null);
      this.#closeUnread(CLOSE.tryAgainLater, "Overloaded: try again later.");
    }
  }

  /** The rest of a message is not read, and so no confirmation. */
  #closeUnread(code: number, reason: string): void {
    this.#socket.close(code, reason);
    this.#socket.pause();
    setTimeout(() => this.#socket.terminate(), UNREAD_CLOSE_MS).unref();
  }

  /** Pings and pongs may arrive between the parts of a message, and without any. */
  #dropControl(data: Buffer): void {
    const { bytes, since } = this.#unfinished;
    const length = CONTROL_HEAD_BYTES + data.length;
    if (bytes > length) {
      this.#unfinished = { bytes: bytes - length, since };
      this.#ports.bodies.release(this, length);
    } else {
      this.#releaseParts();
    }
  }

  #releaseParts(): void {
    this.#unfinished = { bytes: 0, since: 0 };
    this.#ports.bodies.release(this);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#releaseParts();
    // Its last part may have been rejected.
    if (this.#socket.readyState !== this.#socket.OPEN) {
      return;
    }
    this.#usedAt = performance.now();
    if (isBinary) {
      this.#socket.close(CLOSE.unsupported, "Messages must be text.");
      return;
    }
    if (this.#isEnding) {
      return;
    }
    let streamId: string | null = null;
    try {
      const frame = this.#parsed(data);
      if (frame.kind === "create") {
        streamId = frame.streamId;
        this.#add(streamId, { text: data, isWarmUp: frame.isWarmUp });
      } else if (frame.kind === "steer") {
        this.#socket.send(steerFailedFrame(frame.event));
      }
    } catch (error) {
      this.#reject(error, streamId);
    }
    this.#advance();
  }

  #parsed(text: Buffer): ClientFrame {
    const { key, bodies } = this.#ports;
    try {
      bodies.reserveChunk(key, text, text);
      return readFrame(bodies.parseJson(key, text, text));
    } finally {
      bodies.release(text);
    }
  }

  #add(streamId: string | null, message: Waiting): void {
    const { key, bodies } = this.#ports;
    try {
      bodies.reserveChunk(key, message, message.text);
      this.#streams.add(streamId, message);
    } catch (error) {
      bodies.release(message);
      throw error;
    }
  }

  #advance(): void {
    for (;;) {
      const next = this.#streams.next();
      if (next === null) {
        return;
      }
      void this.#run(next.stream, next.message);
    }
  }

  async #run(stream: SocketStream, message: Waiting): Promise<void> {
    const turn = new Turn(this.#memory.ofStream(stream.id), message.isWarmUp);
    stream.turn = turn;
    try {
      // Counted by the request from here on.
      this.#ports.bodies.release(message);
      const answer = await this.#carryOut(message.text, turn.headers);
      await this.#passOn(answer, stream.id);
    } catch (error) {
      if (!turn.isCancelled) {
        this.#reject(error, stream.id);
      }
    }
    turn.ended();
    stream.turn = null;
    this.#usedAt = performance.now();
    this.#closeIfEnded();
    this.#advance();
  }

  async #passOn(answer: TurnAnswer, streamId: string | null): Promise<void> {
    const { statusCode, headers } = answer;
    if (statusCode !== 200) {
      const text = Buffer.concat(await answer.stream().toArray());
      const error = recordOf(parseRecord(text.toString("utf8"))?.["error"]);
      return this.#send(
        errorFrame(statusCode, error, streamId, errorHeaders(headers)),
      );
    }
    const parser = new SseParser();
    let isWhole = false;
    const pass = async (events: readonly SseEvent[]) => {
      for (const event of events) {
        const { text, isLast } = eventFrame(event, streamId);
        isWhole ||= isLast;
        await this.#send(text);
      }
    };
    for await (const chunk of answer.stream() as AsyncIterable<Buffer>) {
      await pass(parser.push(chunk));
      if (this.#socket.readyState !== this.#socket.OPEN) {
        return;
      }
    }
    await pass(parser.end());
    if (!isWhole) {
      throw new CallError(
        "upstream_error",
        "The provider ended the stream before its answer was complete. Try again.",
      );
    }
  }

  /** Resolves when the client has read enough of what was sent, or has left. */
  async #send(text: string): Promise<void> {
    const sent = Promise.withResolvers<null>();
    this.#socket.send(text, () => sent.resolve(null));
    if (this.#socket.bufferedAmount <= MAX_UNREAD_BYTES) {
      return;
    }
    const idleMs = this.#ports.idleMs();
    const late =
      idleMs === 0
        ? undefined
        : setTimeout(() => this.#socket.terminate(), idleMs);
    await sent.promise;
    clearTimeout(late);
  }

  #reject(error: unknown, streamId: string | null): void {
    const known = error instanceof CallError ? error : unexpected();
    if (known !== error) {
      this.#ports.log.error({ error }, "unexpected error in a WebSocket");
    }
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.send(callErrorFrame(known, streamId));
    }
  }

  #closeIfEnded(): void {
    if (this.#isEnding && this.#streams.inProgress.length === 0) {
      this.#socket.close(CLOSE.restart, "The gateway restarts: connect again.");
    }
  }

  #dropWaiting(): void {
    for (const message of this.#streams.dropWaiting()) {
      this.#ports.bodies.release(message);
    }
  }

  #closed(): void {
    this.#isEnding = true;
    this.#dropWaiting();
    this.#ports.bodies.release(this);
    for (const turn of this.#streams.inProgress) {
      turn.cancel();
    }
    this.#memory.clear();
  }
}

const ERROR_HEADERS = /^(retry-after$|x-should-retry$|x-ratelimit-|x-hearth-)/;

/** The headers of an answer that say more than its error. */
function errorHeaders(headers: JsonRecord): JsonRecord {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => ERROR_HEADERS.test(name)),
  );
}

function unexpected(): CallError {
  return new CallError(
    "internal",
    "Unexpected error; the log of the gateway has details. Try again.",
  );
}
