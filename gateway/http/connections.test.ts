import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { expect, test } from "vitest";
import { watchConnections } from "./connections.ts";
import { listen } from "../../test/servers/ports.ts";

const MAX = 2;

/** A server that has accepted a connection on which nothing was sent yet. */
async function acceptOne(): Promise<{
  readonly server: Server;
  readonly client: Socket;
  readonly connections: ReturnType<typeof watchConnections>;
}> {
  const server = createServer((_request, response) => response.end("answered"));
  const log = pino({ level: "silent" });
  const connections = watchConnections(server, { maxConnections: MAX, log });
  const port = await listen(server);
  const accepted = once(server, "connection");
  const client = connect(port, "127.0.0.1");
  await accepted;
  return { server, client, connections };
}

test("a connection whose first request is in transit is answered before it is closed", async () => {
  const { server, client, connections } = await acceptOne();
  const closed = new Promise((resolve) => server.close(resolve));
  connections.closeIdle();
  client.write("GET / HTTP/1.1\r\nhost: hearth\r\n\r\n");
  expect(await text(client)).toContain("answered");
  await closed;
});

test("a connection that sends nothing does not delay the shutdown", async () => {
  const { server, client, connections } = await acceptOne();
  const closed = new Promise((resolve) => server.close(resolve));
  connections.closeIdle();
  expect(await text(client)).toBe("");
  await closed;
});

test("connections above the limit are closed, and the log says once what to do", async () => {
  const server = createServer((_request, response) => response.end("answered"));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  watchConnections(server, { maxConnections: MAX, log });
  const port = await listen(server);
  const clients = Array.from({ length: MAX }, () => connect(port, "127.0.0.1"));
  await Promise.all(clients.map((client) => once(client, "connect")));
  const isAnswered = () =>
    fetch(`http://127.0.0.1:${port}`, {
      headers: { connection: "close" },
    }).then(
      ({ ok }) => ok,
      () => false,
    );
  expect([await isAnswered(), await isAnswered()]).toEqual([false, false]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("ulimit -n");
  clients[0]?.destroy();
  await expect.poll(isAnswered).toBe(true);
  clients[1]?.destroy();
  await new Promise((resolve) => server.close(resolve));
});
