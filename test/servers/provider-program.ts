// The mock provider as a separate program, whose record survives the gateways that campaigns kill.
// Arguments: address, port (0: a free one), file of finished ids, `quiet`. Prints `url URL` once and then, unless quiet, a line
// `moment MOMENT ID` for each moment.
// The line `arm MOMENT COUNT PID PATH` on standard input makes it kill PID at the COUNT-th such moment of a request whose path
// starts with PATH, and print `killed MOMENT ID`. The kill happens here because the gateway would already have continued
// before a line reached the campaign.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { startMockProvider, type MockMoment } from "./provider.ts";

const [host = "127.0.0.1", port = "0", record = "", mode] =
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
    print(`killed ${moment} ${id}`);
  }
  print(`moment ${moment} ${id}`);
}

function pathOf(id: string): string {
  return provider.requests.findLast((request) => request.id === id)?.path ?? "";
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

function print(line: string): void {
  writeSync(1, `${line}\n`);
}

const provider = await startMockProvider({
  host,
  port: Number(port),
  record,
  // Unread lines would block the calls.
  ...(mode === "quiet" ? {} : { onMoment }),
});
print(`url ${provider.url}`);

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
// The parent process has ended.
input.on("close", () => process.exit(0));
