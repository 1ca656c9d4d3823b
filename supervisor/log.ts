import { pino, type Logger } from "pino";

/** JSON lines on standard output, pretty on a terminal. */
export function openLog(): Logger {
  if (process.stdout.isTTY)
    return pino({
      transport: {
        target: "pino-pretty",
        options: { ignore: "pid,hostname" },
      },
    });
  const output = pino.destination({ fd: 1, sync: true });
  // A full disk silences the log; it must not end what watches over the rest.
  output.on("error", () => {});
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, output);
}
