import { createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { freePort, holderOf, isFree, portTaken } from "./ports.ts";

let server: Server | undefined;

afterEach(() => {
  server?.close();
  server = undefined;
});

async function occupy(): Promise<number> {
  const port = await freePort();
  server = createServer();
  await new Promise<void>((resolve) =>
    server?.listen(port, "127.0.0.1", resolve),
  );
  return port;
}

test("a port in use is not free, and its program is named", async () => {
  const port = await occupy();
  expect(await isFree(port)).toBe(false);
  expect(holderOf(port)).toMatchObject({ pid: process.pid });
  expect(portTaken(port, "gateway", "HEARTH_GATEWAY_PORT")).toMatch(
    new RegExp(
      `^port ${port} of gateway is in use by pid ${process.pid} \\(\\S+\\): stop that program, or set another port with HEARTH_GATEWAY_PORT=<port>\\.$`,
    ),
  );
});

test("the preferred port is used if free, otherwise another one", async () => {
  const port = await occupy();
  expect(await freePort(port)).not.toBe(port);
  server?.close();
  await new Promise((resolve) => server?.once("close", resolve));
  expect(await freePort(port)).toBe(port);
});
