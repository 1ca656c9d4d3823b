import { createServer, type Socket } from "node:net";
import { listen } from "../servers/ports.ts";

/** Stands for the internet: a proxy that connects nobody and remembers who was wanted. */
export interface Outside {
  /** Variables that send a program's requests to other hosts here. */
  readonly env: Readonly<Record<string, string>>;
  /** First line of each request: `CONNECT example.com:443 HTTP/1.1`. */
  readonly attempts: readonly string[];
  close(): Promise<void>;
}

export async function startOutside(): Promise<Outside> {
  const attempts: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      attempts.push(String(data).split("\r\n")[0] ?? "");
      socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    });
  });
  const port = await listen(server);
  const proxy = `http://127.0.0.1:${port}`;
  const local = "127.0.0.1,localhost";
  return {
    env: {
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      ALL_PROXY: proxy,
      NO_PROXY: local,
      http_proxy: proxy,
      https_proxy: proxy,
      all_proxy: proxy,
      no_proxy: local,
    },
    attempts,
    async close() {
      for (const socket of open) {
        socket.destroy();
      }
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
