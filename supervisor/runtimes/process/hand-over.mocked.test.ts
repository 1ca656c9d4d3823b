import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { Failure } from "../../../core/failure.ts";
import { startProcess } from "../../../core/execute.ts";
import { programSpec } from "../../../test/supervisor/specs.ts";
import { handOver } from "./hand-over.ts";
import { startTimeOf } from "./identity.ts";
import { killGroup } from "./stop.ts";

vi.mock("./identity.ts", async (importActual) => {
  const actual = await importActual<typeof import("./identity.ts")>();
  return { ...actual, startTimeOf: vi.fn(actual.startTimeOf) };
});

/** Starts a successor on SIGUSR2, and ends. */
const PREDECESSOR = `
  const { spawn } = require("node:child_process");
  const { readFileSync, writeFileSync } = require("node:fs");
  process.on("SIGUSR2", () => {
    const { started } = JSON.parse(readFileSync(process.argv[1], "utf8"));
    const options = { detached: true, stdio: "ignore" };
    const { pid } = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], options);
    writeFileSync(started, pid + "\\n");
    setTimeout(() => process.exit(), 1000);
  });
  console.log("ready");
  setInterval(() => {}, 1000)`;

test("a successor is found although no file descriptor was free when it started", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-hand-over-"));
  const successorFile = join(directory, "successor.json");
  const spec = {
    ...programSpec(directory, { name: "gateway", port: 1 }, { successorFile }),
    probe: () => Promise.resolve(true),
  };
  const predecessor = startProcess(
    process.execPath,
    ["-e", PREDECESSOR, successorFile],
    { detached: true, stdout: "pipe" },
  );
  const pid = predecessor.pid ?? 0;
  const running = { pid, startTime: startTimeOf(pid) ?? "" };
  try {
    await new Promise((resolve) => predecessor.stdout?.once("data", resolve));
    vi.mocked(startTimeOf).mockImplementationOnce(() => {
      throw new Failure("cannot read /proc/1/stat (EMFILE)");
    });
    const log = join(directory, "log");
    const successor = await handOver(running, successorFile, spec, log);
    expect(successor?.pid).toBeGreaterThan(0);
    if (successor !== undefined) {
      killGroup(successor);
    }
  } finally {
    killGroup(running);
    rmSync(directory, { recursive: true, force: true });
  }
});
