import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect } from "vitest";

/** Looks at the arguments of every command that runs below this process, four times a second: everybody on the machine may. */
export function watchArguments(): { stop(): Promise<string> } {
  const seen = new Set<string>();
  let stopped = false;
  const watching = (async () => {
    while (!stopped) {
      const { stdout } = await promisify(execFile)("ps", [
        ...["-axo", "pid=,ppid=,args="],
      ]);
      const ours = new Set([process.pid]);
      // Children come after their parents but where ids wrapped around: those are seen at the next look.
      for (const line of stdout.split("\n")) {
        const [, pid, parent, args] =
          /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
        if (!ours.has(Number(parent))) continue;
        ours.add(Number(pid));
        seen.add(args ?? "");
      }
      await sleep(250);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await watching;
      expect(seen.size).toBeGreaterThan(1);
      return [...seen].join("\n");
    },
  };
}
