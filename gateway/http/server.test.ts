import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Bodies } from "./bodies.ts";
import { createServer } from "./server.ts";

const LIMIT = 1_000;
const bodies = new Bodies({ bodiesLimitBytes: LIMIT, workers: 1 });
const server = createServer({
  bodyLimitBytes: LIMIT,
  bodies,
  trustedProxies: [],
  log: pino({ level: "silent" }),
  arrivalMs: 200,
});

beforeAll(async () => {
  server.post("/", () => ({ ok: true }));
  await server.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(() => server.close());

test("a body that stays incomplete is rejected, and its memory released", async () => {
  const { port } = server.server.address() as AddressInfo;
  const stalled = connect(port, "127.0.0.1");
  stalled.write(
    `POST / HTTP/1.1\r\nhost: gateway\r\ncontent-length: ${LIMIT}\r\n\r\n${"x".repeat(LIMIT / 2)}`,
  );
  const [answer] = (await once(stalled, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 408 /);
  const next = Buffer.alloc(LIMIT / 2);
  await vi.waitFor(() => bodies.reserveChunk("", next, next));
});
