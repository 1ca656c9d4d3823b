import type { FastifyReply } from "fastify";
import type { Gateway } from "../gateway.ts";
import type { CallError } from "../http/errors.ts";
import { sseText } from "../providers/wire.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { inDialect } from "./call-error.ts";
import { onceAllLeft } from "./once-all-left.ts";
import { answerHeaders } from "./headers.ts";
import { openaiErrorPieces } from "./stream-error.ts";
import type { WaitingClient } from "./waiting-client.ts";

export const STREAM_TYPE = "text/event-stream; charset=utf-8";

/** Proxies and clients give up on streams that are silent for longer, from 30 s on. */
const REPEAT_MS = 10_000;

/**
 * The client of a call that has not been answered. One that waits for a stream is told why in comments, which every parser of
 * server-sent events ignores: its connection stays alive, and another deployment can still answer.
 */
export class StreamComments implements WaitingClient {
  readonly connection: FastifyReply["raw"];
  readonly #gateway: Pick<Gateway, "config" | "flights">;
  readonly #call: Call;
  readonly #admitted: Admitted;
  readonly #reply: FastifyReply;
  #left: AbortSignal | null = null;

  constructor(
    gateway: Pick<Gateway, "config" | "flights">,
    call: Call,
    admitted: Admitted,
    reply: FastifyReply,
  ) {
    this.connection = reply.raw;
    this.#gateway = gateway;
    this.#call = call;
    this.#admitted = admitted;
    this.#reply = reply;
  }

  get left(): AbortSignal {
    if (this.#left === null) {
      const aborter = new AbortController();
      this.#left = aborter.signal;
      onceAllLeft(this.#gateway.flights, this.#call, this.connection, () =>
        aborter.abort("the client has left"),
      );
    }
    return this.#left;
  }

  tell(reason: () => string, afterMs: number): () => void {
    if (!this.#call.stream) {
      return () => undefined;
    }
    let timer: NodeJS.Timeout;
    const tell = () => {
      this.#comment(reason());
      timer = setTimeout(tell, REPEAT_MS);
    };
    timer = setTimeout(tell, afterMs);
    return () => clearTimeout(timer);
  }

  #comment(text: string): void {
    const { connection } = this;
    if (connection.destroyed || connection.writableEnded) {
      return;
    }
    if (!connection.headersSent) {
      openStream(this.#reply, this.#streamHeaders());
    }
    connection.write(`: ${text.replaceAll(/[\r\n]+/g, " ")}\n\n`);
  }

  /** What is known before a deployment answers. */
  #streamHeaders(): Record<string, string> {
    return answerHeaders(this.#gateway, this.#call, this.#admitted, {
      upstream: null,
      cost: null,
      cache: this.#call.cacheKey === null ? "bypass" : "miss",
    });
  }
}

/** Sends the headers of a stream, unless a comment was sent before. */
export function openStream(
  reply: FastifyReply,
  headers: Record<string, string>,
): void {
  const client = reply.raw;
  if (client.headersSent) {
    return;
  }
  // Only a client that does not read is idle: untilRead sets the timeout.
  client.setTimeout(0, () => client.destroy());
  client.writeHead(200, {
    ...headers,
    "content-type": STREAM_TYPE,
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  });
  reply.hijack();
}

/** Ends a stream of comments with an error event; false: none was opened, and the error can be answered as usual. */
export function failStream(
  gateway: Pick<Gateway, "config">,
  call: Call | null,
  reply: FastifyReply,
  error: () => CallError,
): boolean {
  const client = reply.raw;
  if (call?.stream !== true || !client.headersSent || client.writableEnded) {
    return false;
  }
  const known = inDialect(gateway, error());
  const pieces =
    call.kind.shape?.stream(call.body, call.responseContext?.id).fail(known) ??
    openaiErrorPieces(known);
  client.end(sseText(pieces));
  return true;
}
