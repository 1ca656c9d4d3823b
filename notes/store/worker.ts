// The thread of one database: only it opens the file. Large writes and long reads yield to other requests every few milliseconds.
import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { sum } from "../../core/sum.ts";
import { Refusal, refusalOf, storageFailureOf } from "../refusal.ts";
import type { Answer, Piece } from "./answer.ts";
import { openSource, type BodySource } from "./body-source.ts";
import { maintainRegularly } from "./maintenance.ts";
import { operations } from "./operations.ts";
import type {
  ChangesEnd,
  FromWorker,
  StoreRequest,
  ToWorker,
  WorkerData,
} from "./protocol.ts";
import {
  breather,
  disconnect,
  exclusively,
  openStore,
  publicState,
  type Store,
} from "./store.ts";

/** Bytes per chunk, and chunks sent to a client but not yet acknowledged. */
const CHUNK_BYTES = 65_536;
const MAX_UNACKNOWLEDGED_CHUNKS = 4;
/** A longer piece is sent as a separate chunk. */
const LONG_BYTES = 262_144;

/** Bytes of long chunks in memory that clients have not read yet. Beyond it, a long piece waits in a file. */
const MAX_UNREAD_BYTES = 67_108_864;

interface Call {
  underWay: number;
  /** Of a long chunk that waits for its client. */
  unreadBytes: number;
  cancelled: boolean;
  wake: () => void;
}

const port = parentPort!;
const calls = new Map<number, Call>();

const post = (message: FromWorker, transfer: ArrayBuffer[] = []): void => {
  port.postMessage(message, transfer);
};

start();

function start(): void {
  let store: Store;
  try {
    store = openStore(workerData as WorkerData, post);
  } catch (failure) {
    const { code, message: reason } = refusalOf(failure);
    post({
      kind: "unusable",
      code,
      reason,
      detail: (failure as Error).message,
      storageFailure: storageFailureOf(failure),
    });
    return;
  }
  port.on("message", (message: ToWorker) => {
    switch (message.kind) {
      case "call":
        void answer(store, message.call, message.request);
        break;
      case "ack": {
        const call = calls.get(message.call);
        if (call === undefined) {
          break;
        }
        call.underWay -= 1;
        call.wake();
        break;
      }
      case "cancel": {
        const call = calls.get(message.call);
        if (call === undefined) {
          break;
        }
        call.cancelled = true;
        call.wake();
        break;
      }
      case "ping":
        post({ kind: "pong" });
        break;
      case "close":
        void close(store);
        break;
      default:
        message satisfies never;
    }
  });
  maintainRegularly(store);
  const { readOnly } = store;
  post({ kind: "ready", state: publicState(store), readOnly });
}

async function answer(
  store: Store,
  number: number,
  request: StoreRequest,
): Promise<void> {
  const call: Call = {
    underWay: 0,
    unreadBytes: 0,
    cancelled: false,
    wake: () => undefined,
  };
  calls.set(number, call);
  try {
    const result = await operations[request.operation](store, request);
    sendHead(number, result);
    if ("pieces" in result) {
      const end = await sendPieces(number, call, result.pieces);
      // An interrupted answer must not look like a complete one.
      if (!call.cancelled) {
        post({ kind: "end", call: number, end });
      }
    }
  } catch (failure) {
    const refusal = refusalOf(failure);
    post({
      kind: "refused",
      call: number,
      code: refusal.code,
      reason: refusal.message,
      detail:
        failure instanceof Refusal
          ? undefined
          : ((failure as Error).stack ?? String(failure)),
      storageFailure: storageFailureOf(failure),
    });
  } finally {
    calls.delete(number);
  }
}

function sendHead(number: number, result: Answer): void {
  post({
    kind: "head",
    call: number,
    status: result.status,
    headers: result.headers ?? {},
    body: "body" in result ? result.body : undefined,
    streaming: "pieces" in result,
  });
}

async function sendPieces(
  number: number,
  call: Call,
  pieces: Generator<Piece, ChangesEnd | void>,
): Promise<ChangesEnd | undefined> {
  const breathe = breather();
  let batch: Uint8Array[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    if (size === 0) {
      return;
    }
    const bytes = joined(batch, size);
    batch = [];
    size = 0;
    await sendChunk(number, call, bytes);
  };
  for (;;) {
    const next = pieces.next();
    if (call.cancelled) {
      pieces.return(undefined);
      return undefined;
    }
    if (next.done === true) {
      await flush();
      return next.value ?? undefined;
    }
    const piece = next.value;
    if (typeof piece !== "string" && isOwnBuffer(piece)) {
      // A large body is transferred without a copy, which would only cost memory.
      await flush();
      await (piece.length > LONG_BYTES ? sendLong : sendChunk)(
        number,
        call,
        piece,
      );
    } else if (piece.length > 0) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
      batch.push(bytes);
      size += bytes.length;
      if (size >= CHUNK_BYTES) {
        await flush();
      }
    }
    await breathe();
  }
}

async function sendChunk(
  number: number,
  call: Call,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  await untilRead(call, MAX_UNACKNOWLEDGED_CHUNKS - 1);
  call.underWay += 1;
  post({ kind: "chunk", call: number, bytes }, [bytes.buffer]);
}

/** Resolves once the client has read them. */
async function sendLong(
  number: number,
  call: Call,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const unread = sum([...calls.values()].map((each) => each.unreadBytes));
  if (unread + bytes.length <= MAX_UNREAD_BYTES) {
    call.unreadBytes = bytes.length;
    await untilRead(call, 0);
    await sendChunk(number, call, bytes);
    await untilRead(call, 0);
    call.unreadBytes = 0;
    return;
  }
  for (const part of spooledParts(bytes)) {
    await sendChunk(number, call, part);
    if (call.cancelled) {
      return;
    }
  }
}

/** Waits until at most `most` chunks are unread, or the call is cancelled. */
async function untilRead(call: Call, most: number): Promise<void> {
  while (call.underWay > most && !call.cancelled) {
    await new Promise<void>((resolve) => {
      call.wake = resolve;
    });
  }
}

/** The bytes in short parts, from a file: answers that no client reads must not use up the memory. The bytes are freed. */
function* spooledParts(
  bytes: Uint8Array<ArrayBuffer>,
): Generator<Uint8Array<ArrayBuffer>, void> {
  const { length } = bytes;
  const { spoolDirectory } = workerData as WorkerData;
  const path = join(spoolDirectory, randomUUID());
  let source: BodySource | undefined;
  try {
    writeFileSync(path, bytes, { flag: "wx", mode: 0o600 });
    source = openSource({ kind: "file", path, length });
  } finally {
    // The open file needs no name.
    rmSync(path, { force: true });
  }
  bytes.buffer.transfer(0);
  try {
    for (let at = 0; at < length; at += CHUNK_BYTES) {
      yield source.read(
        at,
        Math.min(at + CHUNK_BYTES, length),
      ) as Uint8Array<ArrayBuffer>;
    }
  } finally {
    source.close();
  }
}

function isOwnBuffer(piece: Uint8Array): piece is Uint8Array<ArrayBuffer> {
  return (
    piece.length >= CHUNK_BYTES && piece.length === piece.buffer.byteLength
  );
}

function joined(
  pieces: readonly Uint8Array[],
  size: number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

async function close(store: Store): Promise<void> {
  store.closing = true;
  for (const call of calls.values()) {
    call.cancelled = true;
    call.wake();
  }
  await exclusively(store, async () => {
    disconnect(store);
  });
  post({ kind: "closed" });
  port.close();
}
