import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unknownName } from "../core/config/problem.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { readVariable } from "../core/environment.ts";
import { lastLines, sizeOf } from "../supervisor/runtimes/process/log-files.ts";
import { addedLinePrinter, printLatest } from "./print-logs.ts";
import { showRemoteLogs } from "./remote-logs.ts";
import { addressArg, findStack, supervisorHere } from "./stack-client.ts";
import { defineVerb, UsageError } from "./verb.ts";

const FOLLOW_EVERY_MS = 200;

export const logs = defineVerb({
  name: "logs",
  description: "Show the latest log lines of one service, or of all.",
  example: "hearth logs gateway --lines 100 --follow",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "gateway, notes, postgres, echo or supervisor",
    },
    lines: {
      type: "string",
      alias: "n",
      default: "50",
      description: "Number of lines for each service",
      valueHint: "number",
    },
    follow: {
      type: "boolean",
      alias: "f",
      description: "Follow new lines",
    },
    json: {
      type: "boolean",
      description: "Print each line as JSON, with its service",
    },
    ...addressArg,
  },
  run: async ({ name, lines, follow, json, url }) => {
    const home = locateHome();
    const count = Number(lines);
    if (!/^\d+$/.test(lines) || count > 100_000) {
      throw new UsageError(
        `--lines must be a number up to 100000, not "${lines}".`,
      );
    }
    if (areElsewhere(home, url)) {
      const options = { count, follow: follow === true, json: json === true };
      await showRemoteLogs(findStack(url), name, options);
      return 0;
    }
    const names = chooseLogs(home, name);
    for (const each of names) {
      printLatest(
        names,
        each,
        lastLines(fileOf(home, each), count),
        json === true,
      );
    }
    if (follow) {
      await followAll(home, names, addedLinePrinter(names, json === true));
    }
    return 0;
  },
});

/** Another supervisor was named, or the one here runs containers, whose engine keeps their logs. */
function areElsewhere(home: Home, url: string | undefined): boolean {
  return (
    (url ?? readVariable("HEARTH_URL")) !== undefined ||
    (logNames(home).length === 0 && supervisorHere(home) !== undefined)
  );
}

function chooseLogs(home: Home, name: string | undefined): readonly string[] {
  const known = logNames(home);
  if (known.length === 0) {
    throw new UsageError(
      `no logs in ${home.logs} yet. Run \`hearth up\` to start Hearth.`,
    );
  }
  if (name === undefined) {
    return known;
  }
  if (known.includes(name)) {
    return [name];
  }
  throw new UsageError(`${unknownName("service", name, known)}.`);
}

function logNames(home: Home): readonly string[] {
  try {
    return readdirSync(home.logs)
      .filter((file) => file.endsWith(".log"))
      .map((file) => file.slice(0, -".log".length))
      .toSorted();
  } catch {
    return [];
  }
}

function fileOf(home: Home, name: string): string {
  return join(home.logs, `${name}.log`);
}

/** Shows lines added to the files until the command is interrupted. */
async function followAll(
  home: Home,
  names: readonly string[],
  printAdded: (service: string, line: string) => void,
): Promise<never> {
  const shown = new Map(
    names.map((name) => [name, sizeOf(fileOf(home, name))]),
  );
  for (;;) {
    await sleep(FOLLOW_EVERY_MS);
    for (const name of names) {
      const size = sizeOf(fileOf(home, name));
      const from = shown.get(name) ?? 0;
      if (size === from) {
        continue;
      }
      shown.set(name, size);
      // Smaller than before: the file was rotated, so all of it is new.
      const text = readPart(fileOf(home, name), size < from ? 0 : from, size);
      for (const line of text.split("\n").filter((each) => each !== "")) {
        printAdded(name, line);
      }
    }
  }
}

function readPart(path: string, from: number, to: number): string {
  const file = openSync(path, "r");
  try {
    const part = Buffer.alloc(to - from);
    const read = readSync(file, part, 0, part.length, from);
    return part.subarray(0, read).toString("utf8");
  } finally {
    closeSync(file);
  }
}
