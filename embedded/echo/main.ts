import { parseArgs } from "node:util";
import { startEcho } from "./server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    record: { type: "string" },
  },
});

const echo = await startEcho({
  port: Number(values.port),
  ...(values.record === undefined ? {} : { record: values.record }),
});
// A full disk must not end the process.
process.stdout.on("error", () => undefined);
process.stdout.write(
  `hearth echo (repeats the prompt; no model) on ${echo.address}\n`,
);
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    void echo.close().then(() => process.exit(0));
  });
}
