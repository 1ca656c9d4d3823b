import { createTwoFilesPatch } from "diff";
import { Failure } from "../core/failure.ts";
import {
  differingFiles,
  findNote,
  textsOf,
  type DifferingFile,
} from "../supervisor/vaults/note-difference.ts";
import { differenceSince } from "../supervisor/vaults/vault-past.ts";
import { inZone } from "./local-time.ts";
import { paint, print, printJson, printTable, type Tone } from "./terminal.ts";
import type { OpenedPast } from "./vault-history.ts";
import { counted } from "../core/words.ts";

interface DifferenceOptions {
  readonly vault: string;
  readonly path: string | undefined;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly json: boolean | undefined;
}

/** Prints the files that differ from a time; for a single note, the changed lines. */
export async function showDifference(
  { source, cipher }: OpenedPast,
  { vault, path, at, json }: DifferenceOptions,
): Promise<0> {
  const now = Date.now();
  const difference = await differenceSince(source, cipher, { at, path, now });
  const files = differingFiles(difference);
  const then = inZone(difference.past.at);
  if (path !== undefined && files.length + difference.unchanged === 0) {
    throw new Failure(
      `"${path}" not found in vault ${vault}, neither now nor at ${then}.`,
    );
  }
  const texts = await textsOf(
    source,
    cipher,
    difference,
    findNote(path, difference),
  );
  const patch =
    path === undefined || texts === null || files.length === 0
      ? null
      : createTwoFilesPatch(path, path, ...texts, then, "now");
  if (json === true) {
    printJson({ at: difference.past.at, files, patch });
    return 0;
  }
  if (files.length === 0) {
    print(`${path ?? `Vault ${vault}`} has not changed since ${then}.`);
  } else if (patch === null) {
    printFiles(files, then);
  } else {
    print(painted(patch));
  }
  return 0;
}

function printFiles(files: readonly DifferingFile[], then: string): void {
  print(
    `${counted(files.length, "file differs", "files differ")} from ${then}:`,
  );
  printTable(
    ["file", "since then", "bytes"],
    files.map(({ path, state, size }) => [
      { text: path, tone: "strong" },
      { text: state },
      { text: String(size), right: true },
    ]),
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  "+": "ok",
  "-": "bad",
  "@": "soft",
};

function painted(patch: string): string {
  return patch
    .trimEnd()
    .split("\n")
    .map((line) => paint(TONES[line.charAt(0)] ?? "plain", line))
    .join("\n");
}
