import { createServer } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHome } from "../supervisor/home/home.ts";
import { lockHome } from "../supervisor/home/lock.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import { writeRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { listen } from "../test/servers/ports.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { findStack, httpAddress, untilSupervisorHere } from "./stack-client.ts";

const LONG_MS = 60_000;

let place: ReturnType<typeof temporaryHome>;
beforeEach(() => {
  place = temporaryHome();
  createHome(place.home);
});
afterEach(() => place.remove());

test("a supervisor that is starting is awaited until run.json names it", async () => {
  const { home } = place;
  expect(await untilSupervisorHere(home, LONG_MS)).toBeUndefined();
  const lock = lockHome(home.lock);
  const found = untilSupervisorHere(home, LONG_MS);
  const { pid } = process;
  writeRunFile(home.runFile, {
    supervisor: {
      pid,
      startTime: startTimeOf(pid) ?? "",
      address: "http://127.0.0.1:4080",
      port: 4080,
    },
    services: {},
  });
  expect(await found).toMatchObject({ pid });
  lock?.release();
});

test("the address of a gateway is not that of a supervisor", async () => {
  const gateway = createServer((request, response) => {
    const message = `Route ${request.method} ${request.url} not found. /openapi.json lists the routes.`;
    response.writeHead(404).end(JSON.stringify({ error: message }));
  });
  const url = `http://127.0.0.1:${await listen(gateway)}`;
  const stack = findStack(url, { HEARTH_HOME: place.home.root });
  await expect(stack.ask("GET", "/api/status")).rejects.toThrow(
    `no Hearth supervisor at ${url} (status 404): set its address with --url.`,
  );
  gateway.close();
});

test("an address has a protocol, and loses slashes at its end", () => {
  const example = "http://127.0.0.1:4080";
  expect(httpAddress(`${example}/`, example)).toBe(example);
  for (const text of ["localhost:4080", "ftp://host", "hearth.example.org"]) {
    expect(() => httpAddress(text, example)).toThrow(
      `"${text}" is not an address; write one such as ${example}.`,
    );
  }
});

test("one that is stopping is awaited until it has stopped, and reported if that takes too long", async () => {
  const { home } = place;
  const lock = lockHome(home.lock);
  await expect(untilSupervisorHere(home, 0)).rejects.toThrow(
    /^another `hearth up` is starting or stopping on .*: wait for it, then try again\.$/,
  );
  const found = untilSupervisorHere(home, LONG_MS);
  lock?.release();
  expect(await found).toBeUndefined();
});
