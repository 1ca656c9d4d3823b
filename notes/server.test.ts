import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServerContext } from "./routes/context.ts";
import { createNotesServer } from "./server.ts";

const lines: string[] = [];

/** All that is needed to answer requests without credentials. */
const context = {
  settings: {
    passwordIterations: () => 1,
    onChange: () => undefined,
    origins: () => [],
  },
  databases: { onUsersChange: () => undefined },
  log: pino({}, { write: (line: string) => lines.push(line) }),
} as unknown as ServerContext;

const MAX_CONNECTIONS = 8;
const server = createNotesServer(context, 200, MAX_CONNECTIONS);

beforeAll(async () => {
  server.listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
});
afterAll(() => {
  server.close();
});

test.each(["", "GET /_up HTTP/1.1\r\nhost: notes\r\n"])(
  "a connection whose request never has all its headers is closed: %j",
  async (head) => {
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, "127.0.0.1");
    socket.write(head);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 408 /);
    await once(socket, "close");
  },
);

test("clients that send nothing keep no others out, and the log says once what to do", async () => {
  const { port } = server.address() as AddressInfo;
  const silent = Array.from({ length: MAX_CONNECTIONS }, () =>
    connect(port, "127.0.0.1"),
  );
  await Promise.all(silent.map((client) => once(client, "connect")));
  for (const _ of [1, 2]) {
    const { status } = await fetch(`http://127.0.0.1:${port}/`);
    expect(status).toBe(401);
  }
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("ulimit -n");
  silent.forEach((client) => client.destroy());
});
