import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

export interface Calling {
  readonly baseUrls: readonly string[];
  readonly key: string;
  readonly perSecond: number;
}

export interface Load {
  /** Stops calling and waits for pending calls. */
  stop(): Promise<LoadReport>;
}

export interface LoadReport {
  readonly calls: number;
  readonly streams: number;
  readonly failures: readonly string[];
  /** Longest waits: for the end of a plain answer, and for the first byte and the end of a stream. */
  readonly longestMs: {
    readonly answer: number;
    readonly firstByte: number;
    readonly stream: number;
  };
}

const PROGRAM = fileURLToPath(new URL("./callers-program.ts", import.meta.url));

/** Calls a model through the given addresses in turn, `perSecond` times; every fifth call is a stream of about a second and a half. */
export function callSteadily(calling: Calling): Load {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(calling)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const output = text(child.stdout);
  // A program that ended early is reported by its exit code.
  child.stdin.on("error", () => undefined);
  return {
    async stop() {
      child.stdin.end();
      const [code] = (await ended) as [number | null];
      if (code !== 0) {
        throw new Error(`the callers ended with ${code}`);
      }
      return JSON.parse(await output) as LoadReport;
    },
  };
}

/** Longest waits, in milliseconds, that users accept as "no failed call". */
export const MAX_WAIT_MS = { rotation: 5_000, upgrade: 30_000 } as const;

/**
 * Prints the number of calls and the longest waits; asserts that no call failed, and none waited longer than `maxWaitMs` for an
 * answer or for the first byte of a stream.
 */
export function expectNoFailedCall(
  { calls, streams, failures, longestMs }: LoadReport,
  maxWaitMs: number,
  say: (what: string) => void,
): void {
  const { answer, firstByte, stream } = longestMs;
  say(
    `${calls} calls, ${streams} of them streams, ${failures.length} failed; longest: answer ${answer} ms, first byte of a stream ${firstByte} ms, stream ${stream} ms`,
  );
  expect(failures).toEqual([]);
  expect(streams).toBeGreaterThan(0);
  expect(Math.max(answer, firstByte)).toBeLessThanOrEqual(maxWaitMs);
}
