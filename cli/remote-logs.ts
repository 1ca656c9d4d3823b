import { setTimeout as sleep } from "node:timers/promises";
import { sentencesOf } from "../core/failure.ts";
import type { Status } from "../supervisor/status.ts";
import { addedLinePrinter, printLatest } from "./print-logs.ts";
import type { StackClient } from "./stack-client.ts";

const FOLLOW_EVERY_MS = 2000;
/** Requested on each poll while following; further lines within two seconds are not shown. */
const FOLLOW_LINES = 500;

interface RemoteLogs {
  readonly count: number;
  readonly follow: boolean;
  readonly json: boolean;
}

/** Shows the latest log lines of services through their supervisor, for logs that are not on this machine. */
export async function showRemoteLogs(
  stack: StackClient,
  name: string | undefined,
  { count, follow, json }: RemoteLogs,
): Promise<void> {
  const names = name === undefined ? await servicesOf(stack) : [name];
  const read = readerOf(stack, names);
  for (const each of names) {
    printLatest(names, each, await read(each, count), json);
  }
  if (follow) {
    await followAll(read, names, addedLinePrinter(names, json));
  }
}

type Reader = (name: string, count: number) => Promise<readonly string[]>;

/** Of several services, one without a log, such as a pod that waits for a node, must not hide the others: it has its error instead. */
function readerOf(stack: StackClient, names: readonly string[]): Reader {
  return names.length === 1
    ? (name, count) => linesOf(stack, name, count)
    : (name, count) =>
        linesOf(stack, name, count).catch((error: unknown) =>
          sentencesOf(error),
        );
}

async function servicesOf(stack: StackClient): Promise<readonly string[]> {
  const { services } = (await stack.ask("GET", "/api/status")) as Status;
  return services.map(({ name }) => name);
}

async function linesOf(
  stack: StackClient,
  name: string,
  count: number,
): Promise<readonly string[]> {
  const path = `/api/logs/${encodeURIComponent(name)}?lines=${count}`;
  const { lines } = (await stack.ask("GET", path)) as {
    readonly lines: readonly string[];
  };
  return lines;
}

/** Shows added lines until the command is interrupted. */
async function followAll(
  read: Reader,
  names: readonly string[],
  printAdded: (service: string, line: string) => void,
): Promise<never> {
  const shown = new Map<string, readonly string[]>();
  for (const name of names) {
    shown.set(name, await read(name, FOLLOW_LINES));
  }
  for (;;) {
    await sleep(FOLLOW_EVERY_MS);
    for (const name of names) {
      const lines = await read(name, FOLLOW_LINES);
      for (const line of addedSince(shown.get(name) ?? [], lines)) {
        printAdded(name, line);
      }
      shown.set(name, lines);
    }
  }
}

/** The lines of `now` after those of `before`, both being the end of one log. */
export function addedSince(
  before: readonly string[],
  now: readonly string[],
): readonly string[] {
  for (
    let common = Math.min(before.length, now.length);
    common > 0;
    common -= 1
  ) {
    const from = before.length - common;
    if (now.slice(0, common).every((line, at) => line === before[from + at])) {
      return now.slice(common);
    }
  }
  return now;
}
