import { join } from "node:path";
import { answersOk } from "../../supervisor/checks/http-get.ts";
import { projectRoot } from "../../supervisor/home/home.ts";
import { explainHearth } from "../../embedded/node-program.ts";
import type { History } from "../../supervisor/history/history.ts";
import { startTimeOf } from "../../supervisor/runtimes/process/identity.ts";
import { ProcessRuntime } from "../../supervisor/runtimes/process/process-runtime.ts";
import type { ServiceSpec } from "../../supervisor/runtimes/process/service-spec.ts";

export interface ProgramChoice {
  readonly name: string;
  readonly port: number;
  readonly args?: readonly string[];
}

/** The service spec of the test program (program.ts), which records its starts and stops in `record`. */
export function programSpec(
  directory: string,
  { name, port, args = [] }: ProgramChoice,
  change: Partial<ServiceSpec> = {},
): ServiceSpec {
  const address = `http://127.0.0.1:${port}`;
  const program = join(projectRoot, "test", "supervisor", "program.ts");
  const record = join(directory, "record");
  return {
    name,
    address,
    port,
    needs: [],
    uses: [],
    prepare: async () => {},
    plan: () => ({
      file: process.execPath,
      args: [
        program,
        "--name",
        name,
        "--port",
        String(port),
        "--record",
        record,
        ...args,
      ],
      cwd: directory,
      env: {},
    }),
    probe: (signal) => answersOk(address, signal),
    afterUp: async () => {},
    startWithinMs: 20_000,
    stopSignal: "SIGTERM",
    stopWithinMs: 10_000,
    haltSignal: "SIGKILL",
    explain: explainHearth,
    ...change,
  };
}

/** A runtime with short waits, on the files of a temporary home. */
export function testRuntime(
  home: { readonly logs: string; readonly runFile: string },
  history: History,
  specs: readonly ServiceSpec[],
  max: number = 10,
): ProcessRuntime {
  return new ProcessRuntime({
    upgrading: false,
    specs,
    logDirectory: home.logs,
    policy: { max, perMs: 600_000, firstWaitMs: 20, longestWaitMs: 100 },
    runFile: home.runFile,
    supervisor: {
      pid: process.pid,
      startTime: startTimeOf(process.pid) ?? "",
      address: "http://127.0.0.1:1",
      port: 1,
    },
    history,
    onTrouble: () => {},
    fingerprintKey: "key",
    onChange: () => {},
  });
}
