import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { programEnv } from "../servers/program-env.ts";
import { hasRedisServer } from "../servers/redis.ts";
import type { Results } from "./results.ts";

const BENCH = fileURLToPath(new URL("./main.ts", import.meta.url));

async function bench(...args: readonly string[]) {
  const child = spawn(process.execPath, [BENCH, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: programEnv(),
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    ended,
  ]);
  return { out, errors, code };
}

describe.runIf(hasRedisServer())("npm run bench", () => {
  test("prints one JSON value with a run for each target and load, and proves that nothing was skipped", async () => {
    const { out, errors, code } = await bench(
      "--json",
      "--loads",
      "plain,stream,mix",
      "--concurrency",
      "4",
      "--rates",
      "50",
      "--frontier",
      "1000",
      "--seconds",
      "0.2",
      "--warmup",
      "0.05",
    );
    expect(code, errors).toBe(0);
    const results = JSON.parse(out) as Results;
    const kinds = results.runs.map(
      ({ target, load, mode }) => `${target} ${load} ${mode}`,
    );
    expect(kinds).toEqual([
      "mock plain closed",
      "bare plain closed",
      "gateway plain closed",
      "mock stream closed",
      "bare stream closed",
      "gateway stream closed",
      "gateway mix count",
      "gateway mix count",
      "mock plain open",
      "bare plain open",
      "gateway plain open",
      "mock stream open",
      "gateway stream open",
    ]);
    for (const run of results.runs) {
      expect(run.errors, run.first_error ?? "").toBe(0);
      expect(run.calls_per_second).toBeGreaterThan(0);
      expect(run.concurrency).toBe(
        { closed: 4, count: 16, open: null }[run.mode],
      );
    }
    const mixes = results.runs.filter(({ load }) => load === "mix");
    expect(mixes.map(({ calls, tenants }) => [calls, tenants])).toEqual([
      [2_000, 1],
      [2_000, 5],
    ]);
    for (const { cache_hit_rate } of mixes) {
      expect(cache_hit_rate).toBeGreaterThan(0.5);
    }
    expect(results.proofs.filter(({ holds }) => !holds)).toEqual([]);
    expect(results.proofs).toHaveLength(6);
    expect(results.ratios.map(({ to, load }) => `${to} ${load}`)).toEqual([
      "mock plain",
      "bare plain",
      "mock stream",
      "bare stream",
    ]);
    expect(
      results.frontier.map(({ target, readings }) => [
        target,
        readings.map(({ bound_ms, calls_per_second }) => [
          bound_ms,
          (calls_per_second ?? 0) > 0,
        ]),
      ]),
    ).toEqual([
      ["bare", [[1_000, true]]],
      ["gateway", [[1_000, true]]],
    ]);
    // Takes seconds on an idle machine; the duration is not tested.
  });

  test.each([
    [["--loads", "plian"], "plian is not one of plain"],
    [
      ["--peer", "litellm", "--peer", "portky"],
      "portky is not one of portkey, litellm (did you mean portkey?).",
    ],
    [["--frontier", "1,fast"], "fast is not a number above 0"],
  ])("rejects %s in one sentence", async (args, sentence) => {
    const { errors, code } = await bench(...args);
    expect(code).toBe(2);
    expect(errors).toContain(sentence);
  });
});
