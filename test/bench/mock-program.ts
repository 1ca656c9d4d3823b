// The provider of the benchmark. It uses raw sockets and prepared responses, so that its cost is small compared to the measured
// program, and records the `x-request-id` of every call, to prove that the ledger has the same calls.
import { writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import {
  CHAT_ANSWER,
  EMBEDDING_ANSWER,
  MODELS_ANSWER,
  STREAM_HEAD,
  STREAM_CHUNKS,
} from "./mock-answers.ts";
import { answerParent } from "./programs.ts";

type Question =
  | { readonly ask: "port" }
  /** Writes the ids of all calls so far, one per line. */
  | { readonly ask: "ids"; readonly file: string };

const HEAD_END = Buffer.from("\r\n\r\n");
const STREAM_OPTION = Buffer.from('"stream":true');

const ids: string[] = [];
const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer | null = null;
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    let bytes = pending === null ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      const length = requestLength(bytes);
      if (length === null || bytes.length < length) {
        break;
      }
      answer(socket, bytes.subarray(0, length));
      bytes = bytes.subarray(length);
    }
    pending = bytes.length === 0 ? null : bytes;
  });
});

/** Length of head and body; null while the head is incomplete. */
function requestLength(bytes: Buffer): number | null {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) {
    return null;
  }
  const length = headerOf(
    bytes.toString("latin1", 0, end + 2).toLowerCase(),
    "content-length",
  );
  return end + HEAD_END.length + Number(length ?? 0);
}

function headerOf(head: string, name: string): string | null {
  const at = head.indexOf(`\r\n${name}:`);
  if (at < 0) {
    return null;
  }
  const from = at + name.length + 3;
  return head.slice(from, head.indexOf("\r\n", from)).trim();
}

function answer(socket: Socket, request: Buffer): void {
  const end = request.indexOf(HEAD_END);
  const head = request.toString("latin1", 0, end + 2).toLowerCase();
  const id = headerOf(head, "x-request-id");
  if (id !== null) {
    ids.push(id);
  }
  if (head.startsWith("get ")) {
    socket.write(MODELS_ANSWER);
  } else if (head.startsWith("post /v1/embeddings")) {
    socket.write(EMBEDDING_ANSWER);
  } else if (request.includes(STREAM_OPTION, end)) {
    sendStream(socket);
  } else {
    socket.write(CHAT_ANSWER);
  }
}

/** Sends one chunk per turn of the event loop, since a provider's chunks do not arrive in one piece. */
function sendStream(socket: Socket): void {
  let at = 0;
  socket.write(STREAM_HEAD);
  const next = () => {
    const chunk = STREAM_CHUNKS[at++];
    if (chunk === undefined || socket.destroyed) {
      return;
    }
    socket.write(chunk);
    setImmediate(next);
  };
  next();
}

const listening = new Promise((resolve) =>
  server.listen(0, "127.0.0.1", () => resolve(null)),
);

answerParent(async (question: Question) => {
  await listening;
  switch (question.ask) {
    case "port":
      return { port: (server.address() as AddressInfo).port };
    case "ids":
      writeFileSync(question.file, ids.join("\n"));
      return { count: ids.length };
  }
});
