import { readFileSync } from "node:fs";
import { z } from "zod";
import { writeDurably } from "../../../core/durable-file.ts";
import { codeOf } from "../../../core/failure.ts";
import { isAlive, type ProcessIdentity } from "./identity.ts";

const identity = {
  pid: z.number().int().positive().nullable(),
  startTime: z.string().nullable(),
};

const runFile = z.object({
  supervisor: z
    .object({
      ...identity,
      address: z.string(),
      port: z.number().int(),
      /** Null: it runs from a checkout. Absent: from before there were releases. */
      release: z.string().nullable().optional(),
    })
    .nullable(),
  services: z.record(
    z.string(),
    z.object({
      ...identity,
      address: z.string(),
      port: z.number().int(),
      /** Of the way it was started; another one is not adopted. */
      fingerprint: z.string(),
      /** Where this process reads how to start its successor; absent or null: it cannot hand over. */
      successorFile: z.string().nullable().optional(),
    }),
  ),
});

/** What runs, where: addresses, process ids with start times. Kept after a stop for its ports. */
export type RunFile = Readonly<z.infer<typeof runFile>>;

interface Entry {
  readonly pid: number | null;
  readonly startTime: string | null;
}

/** An entry of run.json whose process lives; undefined when it does not, or there is none. */
export function aliveIn<E extends Entry>(
  entry: E | null | undefined,
): (E & ProcessIdentity) | undefined {
  if (entry == null) {
    return undefined;
  }
  const { pid, startTime } = entry;
  if (pid === null || startTime === null) {
    return undefined;
  }
  return isAlive({ pid, startTime }) ? { ...entry, pid, startTime } : undefined;
}

export const nothingRuns: RunFile = { supervisor: null, services: {} };

/** Reads run.json; one that is missing or not ours counts as empty. */
export function readRunFile(path: string): RunFile {
  try {
    return parseRunFile(readFileSync(path, "utf8"));
  } catch (error) {
    const isNotOurs =
      error instanceof SyntaxError || error instanceof z.ZodError;
    if (codeOf(error) === "ENOENT" || isNotOurs) {
      return nothingRuns;
    }
    throw error;
  }
}

/** Throws what is wrong with the text. */
export function parseRunFile(text: string): RunFile {
  return runFile.parse(JSON.parse(text));
}

export function writeRunFile(path: string, content: RunFile): void {
  writeDurably(path, `${JSON.stringify(content, null, 2)}\n`);
}
