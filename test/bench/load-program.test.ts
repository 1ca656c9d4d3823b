import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { LoadResult } from "./load-measurements.ts";
import type { LoadRun } from "./load-program.ts";
import type { Schedule } from "./load-schedule.ts";
import { programFile, startProgram } from "./programs.ts";
import { listen } from "../servers/ports.ts";

const ends: (() => unknown)[] = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/** A load generator, and a server that answers every request after 100 ms. */
async function startLoad() {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () =>
      setTimeout(
        () =>
          socket.write(
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n\r\n{}",
          ),
        100,
      ),
    );
  });
  const port = await listen(server);
  const generator = startProgram(programFile("load-program.ts"), {
    name: "load generator",
  });
  ends.push(generator.stop, () => server.close());
  return (schedule: Schedule) =>
    generator.ask<LoadResult>({
      load: "plain",
      keys: [""],
      headers: {},
      salt: "test",
      port,
      schedule,
    } satisfies LoadRun);
}

test("a closed loop that is too short for any response lasts until the first one", async () => {
  const load = await startLoad();
  const result = await load({
    kind: "closed",
    concurrency: 1,
    warmupMs: 0,
    durationMs: 1,
  });
  expect(result).toMatchObject({ calls: 1, answered: 1, errors: 0 });
  // The measured time includes the only call, so that the rate is correct.
  expect(result.seconds).toBeGreaterThanOrEqual(
    (result.latency?.max ?? Infinity) / 1_000,
  );
});

test("an open loop ends early once its target does not keep up, after the answers to what was sent", async () => {
  const load = await startLoad();
  const result = await load({
    kind: "open",
    rate: 1_000,
    giveUpAt: 5,
    warmupMs: 0,
    durationMs: 60_000,
  });
  expect(result).toMatchObject({ errors: 0, gaveUp: true, kept: false });
  expect(result.answered).toBeGreaterThanOrEqual(5);
});
