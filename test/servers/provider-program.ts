// The mock provider as a program of its own: what it records outlives the gateways that are killed around it.
// Arguments: address, port (0: a free one), file of finished ids, `quiet`. Says `url URL` once, then, unless quiet, each moment as a line
// `moment MOMENT ID`.
// `arm MOMENT COUNT PID PATH` on its input kills PID at the COUNT-th such moment from now of a request whose path begins
// with PATH, and says `killed MOMENT ID`: done here, because a line would reach the campaign only after the gateway has
// gone on.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { startMockProvider, type MockMoment } from "./provider.ts";

const [host = "127.0.0.1", port = "0", record = "", volume] =
  process.argv.slice(2);
let armed: { moment: string; count: number; pid: number; path: string } | null =
  null;

function onMoment(moment: MockMoment, id: string): void {
  if (
    armed?.moment === moment &&
    pathOf(id).startsWith(armed.path) &&
    --armed.count <= 0
  ) {
    kill(armed.pid);
    armed = null;
    say(`killed ${moment} ${id}`);
  }
  say(`moment ${moment} ${id}`);
}

function pathOf(id: string): string {
  return provider.requests.findLast((request) => request.id === id)?.path ?? "";
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has died already.
  }
}

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

const provider = await startMockProvider({
  host,
  port: Number(port),
  record,
  // Lines that are not read would hold the calls up.
  ...(volume === "quiet" ? {} : { onMoment }),
});
say(`url ${provider.url}`);

const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  const [verb, moment = "", count, pid, path = ""] = line.split(" ");
  if (verb === "arm") {
    armed = { moment, count: Number(count), pid: Number(pid), path };
  }
  if (verb === "disarm") {
    armed = null;
  }
});
// Whoever started it is gone.
input.on("close", () => process.exit(0));
