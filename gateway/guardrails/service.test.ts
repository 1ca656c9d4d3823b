import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { listen } from "../../test/servers/ports.ts";
import type { Subject } from "./guard.ts";
import { serviceChecking } from "./service.ts";

const SUBJECT = {
  callId: "call",
  sessionId: null,
  caller: { kind: "master", userId: null },
  endUser: null,
  inputType: "request",
  tools: null,
} as unknown as Subject;

async function check(url: string) {
  const checking = serviceChecking({
    kind: "service",
    url,
    headers: {},
    params: {},
    timeoutMs: 200,
  });
  if (checking.kind !== "remote") {
    throw new Error("a service is remote");
  }
  return checking.check(["text"], SUBJECT);
}

test("the time limit includes the handshakes of a connection", async () => {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(limit.signal);
  const connections: Socket[] = [];
  // Accepts connections, and never answers.
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    connections.push(socket);
  });
  const checked = check(`https://127.0.0.1:${await listen(server)}/check`);
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

test.each([
  ["no JSON", "passed"],
  [
    "nested deeper than any real one",
    `{"action":"NONE","a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
  ],
])("an answer that is %s counts as none", async (_name, text) => {
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(
    new AbortController().signal,
  );
  const server = createHttpServer((question, response) => {
    question.resume();
    response.end(text);
  });
  const url = `http://127.0.0.1:${await listen(server)}/check`;
  await expect(check(url)).rejects.toThrow(
    "its service did not answer with JSON",
  );
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
});
