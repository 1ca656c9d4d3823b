import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { LoadResult, LoadRun } from "./load-program.ts";
import { programFile, startProgram } from "./programs.ts";

const ends: (() => unknown)[] = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

test("a closed loop that is too short for any response lasts until the first one", async () => {
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
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const generator = startProgram(programFile("load-program.ts"), {
    name: "load generator",
  });
  ends.push(generator.stop, () => server.close());
  const order: LoadRun = {
    load: "plain",
    keys: [""],
    headers: {},
    salt: "test",
    port: (server.address() as AddressInfo).port,
    schedule: { kind: "closed", concurrency: 1, warmupMs: 0, durationMs: 1 },
  };
  const result = await generator.ask<LoadResult>(order);
  expect(result).toMatchObject({ calls: 1, answered: 1, errors: 0 });
  // The measured time includes the only call, so that the rate is correct.
  expect(result.seconds).toBeGreaterThanOrEqual(
    (result.latency?.max ?? Infinity) / 1_000,
  );
});
