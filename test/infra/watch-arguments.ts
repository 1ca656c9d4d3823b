import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

/** Shorter than any of the engine's commands; docker and ssh, which may be shorter, are recorded by wrappers. */
const EVERY_MS = 50;

/**
 * Collects the arguments of every descendant process, which every user of the machine can see. Fails if one of the `expected`
 * programs was not observed.
 */
export function watchArguments(...expected: readonly string[]): {
  stop(): Promise<string>;
} {
  const recorder = recordCommands(["docker", "ssh"]);
  const seen = new Set<string>();
  let stopped = false;
  const watching = (async () => {
    while (!stopped) {
      for (const args of argumentsBelow(process.pid)) {
        seen.add(args);
      }
      await sleep(EVERY_MS);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await watching;
      const commands = [...seen, recorder.stop()].join("\n");
      for (const command of expected) {
        expect(commands).toMatch(new RegExp(`(^|/)${command} `, "m"));
      }
      return commands;
    },
  };
}

/** Puts wrappers on this process's PATH that record their arguments and execute the real programs. */
function recordCommands(names: readonly string[]): { stop(): string } {
  const directory = mkdtempSync(join(tmpdir(), "hearth-arguments-"));
  const log = join(directory, "log");
  const path = process.env["PATH"] ?? "";
  writeFileSync(log, "");
  for (const name of names) {
    writeFileSync(
      join(directory, name),
      `#!/bin/sh\nprintf '%s\\n' "${name} $*" >> '${log}'\nPATH='${path}' exec ${name} "$@"\n`,
      { mode: 0o755 },
    );
  }
  process.env["PATH"] = `${directory}:${path}`;
  return {
    stop() {
      process.env["PATH"] = path;
      const recorded = readFileSync(log, "utf8");
      rmSync(directory, { recursive: true });
      return recorded;
    },
  };
}

/** The arguments of every current descendant of a process. */
function argumentsBelow(root: number): readonly string[] {
  const found: string[] = [];
  const ours = new Set([root]);
  // Ordered by id, children follow their parents unless ids wrapped around; those are found in a later round.
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  for (const pid of pids.toSorted((x, y) => x - y)) {
    // "PID (NAME) STATE PARENT …"; a name may contain any character.
    const [, parent] =
      /^\d+ \([^]*\) \S (\d+) /.exec(readProcess(pid, "stat")) ?? [];
    if (!ours.has(Number(parent))) {
      continue;
    }
    ours.add(pid);
    found.push(readProcess(pid, "cmdline").replaceAll("\0", " "));
  }
  return found;
}

/** Empty when the process has ended. */
function readProcess(pid: number, file: "stat" | "cmdline"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
