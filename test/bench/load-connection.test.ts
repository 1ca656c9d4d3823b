import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { connect, type Answer } from "./load-connection.ts";
import { listen } from "../servers/ports.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) {
    end();
  }
});

/** Returns what a connection reads if the server answers each call with these bytes in pieces of `size`. */
async function read(
  bytes: string,
  size: number,
  calls: number,
): Promise<readonly Answer[]> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => void sendPieces());
    async function sendPieces() {
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.slice(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  });
  const port = await listen(server);
  const answers: Answer[] = [];
  const done = Promise.withResolvers<void>();
  const connection = connect(port, {
    onAnswer(answer) {
      answers.push(answer);
      if (answers.length === calls) {
        done.resolve();
      } else {
        connection.send(Buffer.from("x"), 0);
      }
    },
    onBroken: (reason) => done.reject(new Error(reason)),
    onIdleEnd: () => undefined,
  });
  ends.push(
    () => connection.close(),
    () => server.close(),
  );
  connection.send(Buffer.from("x"), 0);
  await done.promise;
  return answers;
}

const COUNTED =
  "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nslow!";
const CHUNKED =
  "HTTP/1.1 200 OK\r\nx-hearth-cache: hit\r\ntransfer-encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";

test.each([1, 2, 7, 1_000])(
  "finds the end of a response that arrives in pieces of %i bytes",
  async (size) => {
    const counted = await read(COUNTED, size, 3);
    expect(counted.map(({ status, text }) => [status, text])).toEqual(
      Array(3).fill([429, "slow!"]),
    );
    const chunked = await read(CHUNKED, size, 3);
    expect(chunked.map(({ status, cacheHit }) => [status, cacheHit])).toEqual(
      Array(3).fill([200, true]),
    );
  },
);
