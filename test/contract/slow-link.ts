import { connect, createServer, type Socket } from "node:net";
import { listen } from "../servers/ports.ts";

interface SlowLink {
  readonly url: string;
  readonly close: () => void;
}

/** Starts a relay in front of `url` that delays all data by `milliseconds` in each direction, like a VPN. */
export async function slowLink(
  url: string,
  milliseconds: number,
): Promise<SlowLink> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (piece) => {
        setTimeout(() => {
          if (!to.destroyed) {
            to.write(piece);
          }
        }, milliseconds);
      });
      from.on("end", () => setTimeout(() => to.end(), milliseconds));
      from.on("error", () => to.destroy());
    }
  });
  const port = await listen(relay);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      relay.close();
      for (const socket of sockets) {
        socket.destroy();
      }
    },
  };
}
