import { basename } from "node:path";
import { executeOrThrow } from "../../core/execute.ts";

export interface LeftOver {
  readonly pid: number;
  readonly program: string;
  /** Where it lies, as it was started. */
  readonly path: string;
}

/** The engine's plugins and language hosts whose engine was killed: they wait for it for ever. */
export async function leftOverPlugins(): Promise<readonly LeftOver[]> {
  const { stdout } = await executeOrThrow("ps", ["-axo", "pid=,ppid=,args="]);
  return findLeftOver(stdout);
}

/** From lines of `pid ppid arguments`. A plugin with a living engine above it belongs to somebody's run. */
export function findLeftOver(listing: string): readonly LeftOver[] {
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
        path,
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
        /^pulumi-(resource-(docker|postgresql)|language-nodejs)/.test(
          program,
        ) && !engines.has(parent),
    )
    .map(({ pid, program, path }) => ({ pid, program, path }));
}

/** Ends them by their ids. */
export function end(processes: readonly LeftOver[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has ended by itself.
    }
  }
}
