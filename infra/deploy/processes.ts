import { basename } from "node:path";
import { execute, executeOrThrow } from "../../core/execute.ts";

interface LeftoverProcess {
  readonly pid: number;
  readonly program: string;
}

/** Plugins and language hosts of a killed engine: they would wait for it indefinitely. */
export async function findLeftoverPlugins(): Promise<
  readonly LeftoverProcess[]
> {
  const { stdout } = await executeOrThrow("ps", ["-axo", "pid=,ppid=,args="]);
  return selectLeftovers(stdout);
}

/** From lines of `pid ppid arguments`. A plugin whose parent is a live engine belongs to a current run. */
export function selectLeftovers(listing: string): readonly LeftoverProcess[] {
  const processes = listing
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, parent, args = ""]) => {
      const [path = ""] = args.split(" ");
      return {
        pid: Number(pid),
        parent: Number(parent),
        program: basename(path),
      };
    });
  const engines = new Set(
    processes
      .filter(({ program }) => program === "pulumi")
      .map(({ pid }) => pid),
  );
  return processes
    .filter(
      ({ program, parent }) =>
        /^pulumi-(resource-(docker|kubernetes|postgresql)|language-nodejs)/.test(
          program,
        ) && !engines.has(parent),
    )
    .map(({ pid, program }) => ({ pid, program }));
}

/** Whether this process of this machine is an engine: its number may have been given to another program since. */
export async function isEngine(pid: number): Promise<boolean> {
  const { stdout } = await execute("ps", ["-o", "args=", "-p", String(pid)]);
  const [path = ""] = stdout.trim().split(" ");
  return basename(path) === "pulumi";
}

/** Terminates them by id. */
export function end(processes: readonly LeftoverProcess[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has already ended.
    }
  }
}
