import { createServer } from "node:http";
import type { Alarm } from "../../supervisor/alerts/alarm.ts";

/** One alarm of a webhook's message, as the supervisors send it. */
export interface ReceivedAlarm {
  /** The machine that sent it. */
  readonly host: string;
  readonly event: "raised" | "reminder" | "resolved";
  readonly level: Alarm["level"];
  readonly subject: string;
  readonly text: string;
  /** When it was received, in milliseconds since 1970. */
  readonly at: number;
}

interface AlertReceiver {
  readonly url: string;
  readonly received: readonly ReceivedAlarm[];
}

/** The operator's webhook for the supervisors of both hosts; it ends with this process. */
export async function startAlertReceiver(
  address: string,
  port: number,
): Promise<AlertReceiver> {
  const received: ReceivedAlarm[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { host, alarms } = JSON.parse(
        Buffer.concat(chunks).toString("utf8"),
      ) as {
        readonly host: string;
        readonly alarms: readonly Omit<ReceivedAlarm, "host" | "at">[];
      };
      for (const { event, level, subject, text } of alarms) {
        received.push({ host, event, level, subject, text, at: Date.now() });
      }
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return { url: `http://${address}:${port}/`, received };
}
