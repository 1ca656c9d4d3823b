import type { IncomingMessage } from "node:http";
import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { FastifyRequest } from "fastify";
import { MINUTE_MS } from "../../core/duration.ts";
import { parseExactly } from "../../core/exact-json.ts";
import type { ServerConfig } from "../config/types.ts";
import { countBody } from "./count-body.ts";
import { CallError } from "./errors.ts";
import { isForm, readForm } from "./form.ts";

/** Of the memory that this process may use: a body occupies up to four times its size while it is parsed and forwarded. */
const SHARE = 1 / 4;
/** Of a list or an object, on average over `[[],[],…]` and `{"a":{}}`; its text counts separately. */
const BYTES_PER_VALUE = 32;
/** Of a buffer, apart from its content: a client may send a body byte by byte. */
const BYTES_PER_CHUNK = 256;
/** A key may occupy so many times what it leaves free: three quarters of everything if it is alone, and the next key still has a part. */
const TIMES_FREE = 3;
/** In which the headers of a request must arrive. */
export const HEADERS_ARRIVAL_MS = MINUTE_MS;
/** At which the longest body that is accepted may arrive. */
const MIN_BYTES_PER_MS = 100;

const UTF_8 = new TextDecoder();

type Done = (error: Error | null, body?: unknown) => void;

/** Whose bytes are counted: a request, a WebSocket that receives a message, or a call, by its id. */
type Holder = object | string;

interface Reserved {
  readonly key: string;
  readonly bytes: number;
}

/**
 * Reads bodies. All of them, and the whole answers of providers, each from its first byte until its response is closed, occupy at
 * most `bodiesLimitBytes`; null: a quarter of the memory that this process may use. `workers` processes share the limit and the
 * memory, and keys share it fairly. Bytes are counted for a key, by its hash; empty: for the master key.
 */
export class Bodies {
  readonly #limit: number;
  readonly #reserved = new Map<Holder, Reserved>();
  readonly #byKey = new Map<string, number>();
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
    } else {
      try {
        this.#rejectWithoutRoom(keyOf(request), request.raw, announced);
      } catch (error) {
        done(error as Error);
        return;
      }
      this.#read(request, payload, limit, done);
    }
  };

  /** Counts a part of a body that is not read by {@link parse}. Throws 503 where there is no room for it. */
  reserveChunk(key: string, holder: Holder, chunk: Buffer): void {
    this.#reserve(key, holder, chunk.length + BYTES_PER_CHUNK);
  }

  /** Parses JSON whose text is counted already. Throws as {@link reserveChunk} does, 400 if it is none, and 413 for too many values. */
  parseJson(key: string, holder: Holder, text: Buffer): unknown {
    this.#reserve(key, holder, countBody(text) * BYTES_PER_VALUE);
    // Editors and shells on Windows begin files with a byte order mark, which is not part of the text.
    return parseJson(UTF_8.decode(text));
  }

  /** Releases `bytes` of a holder, or all that it occupies, such as a request's body when its response is closed. */
  release(holder: Holder, bytes = Infinity): void {
    const reserved = this.#reserved.get(holder);
    if (reserved === undefined) {
      return;
    }
    const { key, bytes: before } = reserved;
    const left = Math.max(0, before - bytes);
    if (left === 0) {
      this.#reserved.delete(holder);
    } else {
      this.#reserved.set(holder, { key, bytes: left });
    }
    this.#add(key, left - before);
  }

  #reserve(key: string, holder: Holder, more: number): void {
    this.#rejectWithoutRoom(key, holder, more);
    const bytes = (this.#reserved.get(holder)?.bytes ?? 0) + more;
    this.#reserved.set(holder, { key, bytes });
    this.#add(key, more);
  }

  #add(key: string, bytes: number): void {
    this.#total += bytes;
    const ofKey = (this.#byKey.get(key) ?? 0) + bytes;
    if (ofKey === 0) {
      this.#byKey.delete(key);
    } else {
      this.#byKey.set(key, ofKey);
    }
  }

  #rejectWithoutRoom(key: string, holder: Holder, more: number): void {
    const free = this.#limit - this.#total - more;
    if (free < 0) {
      throw busy("all current requests");
    }
    const ofKey = this.#byKey.get(key) ?? 0;
    // A single body may be larger: it is limited by itself.
    const isOnly = ofKey === (this.#reserved.get(holder)?.bytes ?? 0);
    if (!isOnly && ofKey + more > TIMES_FREE * free) {
      throw busy("this key's current requests");
    }
  }

  #read(
    request: FastifyRequest,
    payload: IncomingMessage,
    limit: number,
    done: Done,
  ): void {
    const key = keyOf(request);
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
        this.reserveChunk(key, request.raw, chunk);
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

  #parsed(request: FastifyRequest, chunks: readonly Buffer[]): unknown {
    const { raw, headers, routeOptions } = request;
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
    return this.parseJson(keyOf(request), raw, body);
  }
}

/** The smallest of V8's limit for the heap and the share of one of `workers` in those of the container and the machine, in bytes. */
export function memoryLimit(workers: number): number {
  const constrained = process.constrainedMemory();
  return Math.min(
    getHeapStatistics().heap_size_limit,
    (constrained === 0 ? Infinity : constrained) / workers,
    totalmem() / workers,
  );
}

/** In which a message, or a request with its body, must arrive whole. */
export function maxArrivalMs(
  bodyLimitBytes: number,
  headersMs = HEADERS_ARRIVAL_MS,
): number {
  return headersMs + Math.ceil(bodyLimitBytes / MIN_BYTES_PER_MS);
}

export function keyOf({ caller }: Pick<FastifyRequest, "caller">): string {
  return caller?.kind === "key" ? caller.token : "";
}

function parseJson(text: string): unknown {
  try {
    return parseExactly(text);
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

function busy(whose: string): CallError {
  return new CallError(
    "overloaded",
    `The bodies of ${whose} have reached their limit. Try again in a moment.`,
    { headers: { "retry-after": "1" } },
  );
}
