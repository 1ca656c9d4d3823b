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

/** Shorter than any of the engine's commands; docker's and ssh's, which may be shorter, tell theirs themselves. */
const EVERY_MS = 50;

/**
 * Collects the arguments of every command that runs below this process: everybody on the machine may see them. Not to have seen
 * one of the `expected` programs is not to have looked.
 */
export function watchArguments(...expected: readonly string[]): {
  stop(): Promise<string>;
} {
  const told = letCommandsTell(["docker", "ssh"]);
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
      const commands = [...seen, told.stop()].join("\n");
      for (const command of expected) {
        expect(commands).toMatch(new RegExp(`(^|/)${command} `, "m"));
      }
      return commands;
    },
  };
}

/** Puts programs before the real ones on this process's PATH that write down their arguments and become them. */
function letCommandsTell(names: readonly string[]): { stop(): string } {
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
      const told = readFileSync(log, "utf8");
      rmSync(directory, { recursive: true });
      return told;
    },
  };
}

/** Of every process below one, now. */
function argumentsBelow(root: number): readonly string[] {
  const found: string[] = [];
  const ours = new Set([root]);
  // In the order of their ids children come after their parents, but where ids wrapped around: those are seen later.
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  for (const pid of pids.toSorted((x, y) => x - y)) {
    // "PID (NAME) STATE PARENT …", and a name may hold anything.
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

/** Empty when the process is gone. */
function readProcess(pid: number, file: "stat" | "cmdline"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
