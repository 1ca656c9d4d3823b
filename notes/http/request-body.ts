import { randomUUID } from "node:crypto";
import { open, rm, type FileHandle } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { MINUTE_MS } from "../../core/duration.ts";
import { Refusal } from "../refusal.ts";
import type { Body } from "../store/protocol.ts";

/** Bodies up to this size stay in memory; longer ones are spooled to a file, so that large uploads do not take up memory. */
const MEMORY_BYTES = 1_048_576;
/** A long body is written to its file in parts of this size. */
const PART_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);
/** Zeros compress a thousand to one: a small request must not fill the memory or the disk. */
const MAX_UNPACKED_BYTES = 100_000_000;
/**
 * A client that sends less than so many bytes in this time is disconnected: byte by byte, one without credentials would keep its
 * connection for days.
 */
const MIN_BYTES = 1_000;
const STALLED_MS = MINUTE_MS;

/** Limits for draining a rejected body; the connection of a longer or slower one is closed. */
const MAX_DROPPED_BYTES = 67_108_864;
const MAX_DROPPING_MS = 10_000;

/** A received body; `discard` removes its file. */
export interface ReceivedBody {
  readonly body: Body;
  readonly milliseconds: number;
  readonly discard: () => Promise<void>;
}

/** Receives a request's body, decompressed if gzipped. `maxBytes` counts decompressed bytes; a gzipped body has at most 100 MB. */
export async function receiveBody(
  request: IncomingMessage,
  spoolDirectory: string,
  maxBytes: number,
): Promise<ReceivedBody> {
  const started = performance.now();
  const limit =
    request.headers["content-encoding"] === "gzip"
      ? Math.min(maxBytes, MAX_UNPACKED_BYTES)
      : maxBytes;
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    throw tooLarge();
  }
  const spool = new Spool(join(spoolDirectory, randomUUID()));
  const stalled = setTimeout(() => {
    request.destroy(
      new Refusal("request_timeout", "The request body stalled."),
    );
  }, STALLED_MS);
  let due = MIN_BYTES;
  try {
    for await (const piece of unpacked(request)) {
      if (spool.length + piece.length > limit) {
        throw tooLarge();
      }
      await spool.add(piece);
      if (spool.length >= due) {
        stalled.refresh();
        due = spool.length + MIN_BYTES;
      }
    }
    return {
      body: await spool.body(),
      milliseconds: Math.round(performance.now() - started),
      discard: () => spool.discard(),
    };
  } catch (failure) {
    await spool.discard();
    throw isUnpackFailure(failure)
      ? new Refusal("bad_request", "Request body is not properly gzipped.")
      : failure;
  } finally {
    clearTimeout(stalled);
  }
}

/** Collects a body in memory, and in a file once it is long. Pieces are copied together: a client may send one byte at a time. */
class Spool {
  readonly #path: string;
  #bytes: Buffer = NOTHING;
  /** Bytes in memory. */
  #held = 0;
  #written = 0;
  #file: FileHandle | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get length(): number {
    return this.#written + this.#held;
  }

  async add(piece: Buffer): Promise<void> {
    const most = this.#file === undefined ? MEMORY_BYTES : PART_BYTES;
    if (this.#held + piece.length > most) {
      await this.#flush();
    }
    if (piece.length > PART_BYTES && this.#file !== undefined) {
      await this.#write(piece);
      return;
    }
    this.#reserve(this.#held + piece.length);
    piece.copy(this.#bytes, this.#held);
    this.#held += piece.length;
  }

  /** The complete body. */
  async body(): Promise<Body> {
    if (this.#file === undefined) {
      const bytes = Uint8Array.from(this.#bytes.subarray(0, this.#held));
      return { kind: "memory", bytes };
    }
    await this.#flush();
    return { kind: "file", path: this.#path, length: this.#written };
  }

  async discard(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    if (this.#file !== undefined) {
      await rm(this.#path, { force: true });
    }
  }

  async #flush(): Promise<void> {
    await this.#write(this.#bytes.subarray(0, this.#held));
    this.#held = 0;
    if (this.#bytes.length > PART_BYTES) {
      this.#bytes = NOTHING;
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#file ??= await open(this.#path, "wx", 0o600);
    await writeAll(this.#file, bytes);
    this.#written += bytes.length;
  }

  #reserve(size: number): void {
    if (size > this.#bytes.length) {
      const longer = Buffer.allocUnsafe(Math.max(size, 2 * this.#bytes.length));
      this.#bytes.copy(longer, 0, 0, this.#held);
      this.#bytes = longer;
    }
  }
}

/** Drains a rejected body, so that the client reads the response. False when the connection must be closed instead. */
export async function dropRest(request: IncomingMessage): Promise<boolean> {
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > MAX_DROPPED_BYTES) {
    return false;
  }
  if (request.readableEnded || request.destroyed) {
    return true;
  }
  return await new Promise<boolean>((resolve) => {
    let dropped = 0;
    const finish = (isWhole: boolean): void => {
      clearTimeout(timer);
      request.off("data", drop);
      resolve(isWhole);
    };
    const drop = (piece: Buffer): void => {
      dropped += piece.length;
      if (dropped > MAX_DROPPED_BYTES) {
        finish(false);
      }
    };
    const timer = setTimeout(() => finish(false), MAX_DROPPING_MS);
    request.once("end", () => finish(true));
    request.once("close", () => finish(true));
    request.on("data", drop);
    request.resume();
  });
}

function unpacked(request: IncomingMessage): AsyncIterable<Buffer> {
  const encoding = request.headers["content-encoding"] ?? "identity";
  switch (encoding) {
    case "identity":
      // Leaving the loop must not destroy the request: that would also destroy the response and leave the socket open.
      return request.iterator({ destroyOnReturn: false });
    case "gzip": {
      const gunzip = createGunzip();
      request.on("error", (failure) => gunzip.destroy(failure));
      return request.pipe(gunzip);
    }
    default:
      throw new Refusal(
        "bad_content_type",
        `${encoding} is not a supported content encoding.`,
      );
  }
}

function isUnpackFailure(failure: unknown): boolean {
  return (failure as { code?: string }).code?.startsWith("Z_") === true;
}

function tooLarge(): Refusal {
  return new Refusal("too_large", "the request entity is too large");
}

async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  let at = 0;
  while (at < bytes.length) {
    at += (await file.write(bytes, at)).bytesWritten;
  }
}
