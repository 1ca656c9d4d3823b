import type { IncomingMessage } from "node:http";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { receiveBody } from "./request-body.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-request-body-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});

function receive(
  pieces: Iterable<Buffer> | AsyncIterable<Buffer>,
  maxBytes = Infinity,
) {
  const request = Object.assign(Readable.from(pieces), { headers: {} });
  return receiveBody(
    request as unknown as IncomingMessage,
    directory,
    maxBytes,
  );
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes in use. What other code finalizes is free only a turn after it was collected. */
async function memory(): Promise<number> {
  for (let n = 0; n < 3; n += 1) {
    collectGarbage();
    await nextTurn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test("a body that arrives byte by byte does not take a hundred times its length in memory", async () => {
  const LENGTH = 200_000;
  const before = await memory();
  let used = 0;
  async function* singleBytes(): AsyncGenerator<Buffer> {
    for (let n = 0; n < LENGTH; n += 1) {
      yield Buffer.from([n % 251]);
      if (n % 1000 === 0) {
        await nextTurn();
      }
    }
    used = (await memory()) - before;
  }
  await receive(singleBytes());
  expect(used).toBeLessThan(50 * LENGTH);
});

test.each([
  ["in memory", [1, 100, 70_000]],
  ["that just fits into memory", [1_000_000, 48_576]],
  ["in a file", [1_000_000, 48_577]],
  ["in a file, of short and long pieces", [1_048_570, 1, 9, 80_000, 65_536, 2]],
])("a body %s is complete", async (_where, lengths) => {
  const pieces = lengths.map((length, index) => Buffer.alloc(length, index));
  const { body, discard } = await receive(pieces);
  const bytes =
    body.kind === "file" ? readFileSync(body.path) : Buffer.from(body.bytes);
  expect(bytes.equals(Buffer.concat(pieces))).toBe(true);
  expect(body.kind).toBe(bytes.length > 1_048_576 ? "file" : "memory");
  await discard();
  expect(readdirSync(directory)).toEqual([]);
});

test("nothing is left of a body that is too long", async () => {
  const pieces = [Buffer.alloc(1_100_000), Buffer.alloc(10)];
  await expect(receive(pieces, 1_100_001)).rejects.toThrow("too large");
  expect(readdirSync(directory)).toEqual([]);
});

/** Pieces of one length, each half a minute after the one before. */
async function* slowPieces(length: number): AsyncGenerator<Buffer> {
  for (let n = 0; n < 10; n += 1) {
    yield Buffer.alloc(length);
    await vi.advanceTimersByTimeAsync(30_000);
  }
}

test("a body that arrives byte by byte ends its connection, a slow one does not", async () => {
  vi.useFakeTimers();
  await expect(receive(slowPieces(1))).rejects.toThrow("stalled");
  const { body } = await receive(slowPieces(1_000));
  expect(body).toMatchObject({ kind: "memory" });
});
