import { createServer, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { listen } from "../../test/servers/ports.ts";
import type { Subject } from "./guard.ts";
import { serviceChecking } from "./service.ts";

test("the time limit includes the handshakes of a connection", async () => {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(limit.signal);
  const connections: Socket[] = [];
  // Accepts connections, and never answers.
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    connections.push(socket);
  });
  const checking = serviceChecking({
    kind: "service",
    url: `https://127.0.0.1:${await listen(server)}/check`,
    headers: {},
    params: {},
    timeoutMs: 200,
  });
  const subject = {
    callId: "call",
    sessionId: null,
    caller: { kind: "master", userId: null },
    endUser: null,
    inputType: "request",
    tools: null,
  } as unknown as Subject;
  if (checking.kind !== "remote") {
    throw new Error("a service is remote");
  }
  const checked = checking.check(["text"], subject);
  const rejected = expect(checked).rejects.toThrow(
    "its service did not answer within 0.2 s",
  );
  await expect.poll(() => connections.length).toBe(1);
  expect(AbortSignal.timeout).toHaveBeenCalledWith(200);
  limit.abort();
  await rejected;
  vi.restoreAllMocks();
  for (const socket of connections) {
    socket.destroy();
  }
  server.close();
});
