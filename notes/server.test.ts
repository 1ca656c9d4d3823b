import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServerContext } from "./routes/context.ts";
import { createNotesServer } from "./server.ts";

const lines: string[] = [];

/** All that is needed before the headers of a request have arrived. */
const context = {
  settings: { passwordIterations: () => 1, onChange: () => undefined },
  databases: { onUsersChange: () => undefined },
  log: pino({}, { write: (line: string) => lines.push(line) }),
} as unknown as ServerContext;

const server = createNotesServer(context, 200);

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

test("connections above the limit of open files are closed, and the log says once what to do", async () => {
  const { port } = server.address() as AddressInfo;
  expect(server.maxConnections).toBeGreaterThan(0);
  server.maxConnections = 1;
  const first = connect(port, "127.0.0.1");
  await once(first, "connect");
  for (const rejected of [1, 2].map(() => connect(port, "127.0.0.1"))) {
    await once(rejected, "close");
  }
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("ulimit -n");
  first.destroy();
});
