import { createConnection } from "node:net";
import { z } from "zod";
import { port } from "../../config/fields.ts";
import { everyCheck } from "./every-check.ts";
import type { ProbeContext, ProbeResult } from "./probe.ts";

export const tcpCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("tcp"),
  host: z.string().min(1).default("127.0.0.1"),
  port,
});

/** Whether a port accepts a connection. */
export function probeTcp(
  { host, port }: Pick<z.output<typeof tcpCheck>, "host" | "port">,
  { signal }: Pick<ProbeContext, "signal">,
): Promise<ProbeResult> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, signal });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.destroy();
      resolve({ ok: true, text: "accepts connections" });
    });
  });
}
