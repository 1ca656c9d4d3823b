import type { IncomingMessage } from "node:http";
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { FastifyRequest } from "fastify";
import type { ServerConfig } from "../config/types.ts";
import { countValues } from "../dialects/scan-json.ts";
import { CallError } from "./errors.ts";
import { isForm, readForm } from "./form.ts";

/** Of the memory that this process may use: a body occupies up to four times its size while it is parsed and forwarded. */
const SHARE = 1 / 4;
/** Of a list or an object, on average over `[[],[],…]` and `{"a":{}}`; its text counts separately. */
const BYTES_PER_VALUE = 32;

type Done = (error: Error | null, body?: unknown) => void;

/** Whose bytes are counted: a request, or a WebSocket that receives a message. */
type Holder = object;

/**
 * Reads bodies. All of them together, each from its first byte until its response is closed, occupy at most `bodiesLimitBytes`;
 * null: a quarter of the memory that this process may use. `workers` processes share the limit and the memory.
 */
export class Bodies {
  readonly #limit: number;
  readonly #reserved = new Map<Holder, number>();
  #total = 0;

  constructor({
    bodiesLimitBytes,
    workers,
  }: Pick<ServerConfig, "bodiesLimitBytes" | "workers">) {
    this.#limit =
      bodiesLimitBytes === null
        ? memoryLimit(workers) * SHARE
        : bodiesLimitBytes / workers;
  }

  /** A content type parser of Fastify. */
  readonly parse = (
    request: FastifyRequest,
    payload: IncomingMessage,
    done: Done,
  ): void => {
    const limit = Math.min(request.routeOptions.bodyLimit, this.#limit);
    const { "content-encoding": encoding = "identity" } = request.headers;
    const announced = Number(request.headers["content-length"] ?? 0);
    if (encoding !== "identity") {
      done(compressed());
    } else if (announced > limit) {
      done(tooLarge());
    } else if (this.#total + announced > this.#limit) {
      done(busy());
    } else {
      this.#read(request, payload, limit, done);
    }
  };

  /** Counts bytes that are not read by {@link parse}. Throws 503 where there is no room for them. */
  reserve(holder: Holder, bytes: number): void {
    if (this.#total + bytes > this.#limit) {
      throw busy();
    }
    this.#total += bytes;
    this.#reserved.set(holder, (this.#reserved.get(holder) ?? 0) + bytes);
  }

  /** Parses JSON whose text is counted already. Throws as {@link reserve} does, 400 if it is none, and 413 for too many values. */
  parseJson(holder: Holder, text: Buffer): unknown {
    this.reserve(holder, countValues(text) * BYTES_PER_VALUE);
    return parseJson(text.toString("utf8"));
  }

  /** Releases what a holder occupied, such as a request's body when its response is closed. */
  release(holder: Holder): void {
    this.#total -= this.#reserved.get(holder) ?? 0;
    this.#reserved.delete(holder);
  }

  #read(
    request: FastifyRequest,
    payload: IncomingMessage,
    limit: number,
    done: Done,
  ): void {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (error: Error | null, body?: unknown) => {
      payload.removeListener("data", onData);
      payload.removeListener("end", onEnd);
      payload.removeListener("error", onError);
      // The rest of the body is discarded.
      if (error !== null) {
        payload.resume();
      }
      done(error, body);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        return end(tooLarge());
      }
      try {
        this.reserve(request.raw, chunk.length);
      } catch (error) {
        return end(error as Error);
      }
      chunks.push(chunk);
    };
    const onError = () => end(incomplete());
    const onEnd = () => {
      try {
        const parsed = this.#parsed(request, chunks);
        if (parsed instanceof Promise) {
          parsed.then((form) => end(null, form), end);
        } else {
          end(null, parsed);
        }
      } catch (error) {
        end(error as Error);
      }
    };
    payload.on("data", onData);
    payload.on("end", onEnd);
    payload.on("error", onError);
  }

  #parsed(
    { raw, headers, routeOptions }: FastifyRequest,
    chunks: readonly Buffer[],
  ): unknown {
    const [first] = chunks;
    if (first === undefined) {
      return undefined;
    }
    const body = chunks.length === 1 ? first : Buffer.concat(chunks);
    const contentType = headers["content-type"] ?? "";
    if (routeOptions.config.takesFiles === true && isForm(contentType)) {
      return readForm(body, contentType);
    }
    if (routeOptions.config.takesForm === true) {
      return Object.fromEntries(new URLSearchParams(body.toString("utf8")));
    }
    return this.parseJson(raw, body);
  }
}

/** The smallest of V8's limit for the heap and the share of one of `workers` in those of the container and the machine, in bytes. */
export function memoryLimit(workers = 1): number {
  const constrained = process.constrainedMemory();
  return Math.min(
    getHeapStatistics().heap_size_limit,
    (constrained === 0 ? Infinity : constrained) / workers,
    totalmem() / workers,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CallError(
      "invalid_request",
      `The body is not valid JSON: ${(error as Error).message}.`,
    );
  }
}

function compressed(): CallError {
  return new CallError(
    "invalid_request",
    "Compressed bodies are not supported. Send the body without `content-encoding`.",
  );
}

function tooLarge(): CallError {
  return new CallError(
    "body_too_large",
    "The body is larger than this gateway accepts. Send a shorter prompt, fewer images or a smaller file.",
  );
}

function incomplete(): CallError {
  return new CallError(
    "invalid_request",
    "The connection was closed before the body was complete.",
  );
}

function busy(): CallError {
  return new CallError(
    "overloaded",
    "The bodies of all current requests have reached their limit. Try again in a moment.",
    { headers: { "retry-after": "1" } },
  );
}
