import { createConnection } from "node:net";
import { z } from "zod";
import { port } from "../../config/fields.ts";
import { everyCheck } from "./every-check.ts";
import type { Lookout, Seen } from "./look.ts";

export const tcpCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("tcp"),
  host: z.string().min(1).default("127.0.0.1"),
  port,
});

/** Whether a port accepts a connection. */
export function lookAtTcp(
  { host, port }: Pick<z.output<typeof tcpCheck>, "host" | "port">,
  { signal }: Pick<Lookout, "signal">,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, signal });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.destroy();
      resolve({ ok: true, text: "accepts connections" });
    });
  });
}
