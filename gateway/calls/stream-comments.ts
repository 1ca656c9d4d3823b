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
import { waitingFor, type WaitingClient } from "./waiting-client.ts";

export const STREAM_TYPE = "text/event-stream; charset=utf-8";

/** Proxies and clients give up on streams that are silent for longer, from 30 s on. */
const REPEAT_MS = 10_000;

/**
 * The client of a call that has not been answered. One that waits for a stream gets the reason in comments, which every parser of
 * server-sent events ignores: its connection stays alive, and another deployment can still answer.
 */
export class StreamComments implements WaitingClient {
  readonly connection: FastifyReply["raw"];
  readonly #gateway: Pick<Gateway, "config" | "flights">;
  readonly #call: Call;
  readonly #admitted: Admitted;
  readonly #reply: FastifyReply;
  /** Why it waits, the most precise reason last. */
  readonly #reasons = new Set<() => string>();
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

  notify(reason: () => string, afterMs: number): () => void {
    if (!this.#call.stream) {
      return () => undefined;
    }
    this.#reasons.add(reason);
    let timer: NodeJS.Timeout;
    const repeat = () => {
      if ([...this.#reasons].at(-1) === reason) {
        this.#comment(reason());
      }
      timer = setTimeout(repeat, REPEAT_MS);
    };
    timer = setTimeout(repeat, afterMs);
    return () => {
      clearTimeout(timer);
      this.#reasons.delete(reason);
    };
  }

  #comment(text: string): void {
    const { connection } = this;
    if (connection.destroyed || connection.writableEnded) {
      return;
    }
    if (!connection.headersSent) {
      openStream(this.#reply, this.#streamHeaders());
    }
    connection.write(commentOf(text));
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

/** Keeps the connection of a stream alive while its provider is silent, such as one that reasons for minutes. */
export class SilenceComments {
  readonly #timer: NodeJS.Timeout;

  constructor(client: FastifyReply["raw"], alias: string) {
    this.#timer = setTimeout(() => {
      if (!client.destroyed && !client.writableNeedDrain) {
        client.write(commentOf(waitingFor(alias)));
      }
      this.restart();
    }, REPEAT_MS);
  }

  /** Something was sent to the client. */
  restart(): void {
    this.#timer.refresh();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

function commentOf(text: string): string {
  return `: ${text.replaceAll(/[\r\n]+/g, " ")}\n\n`;
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
