import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { z } from "zod";
import { writeDurably } from "../../../core/durable-file.ts";
import { codeOf, isFullDisk } from "../../../core/failure.ts";
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
      /** Null: it runs from a checkout. Absent: written before releases existed. */
      release: z.string().nullable().optional(),
    })
    .nullable(),
  services: z.record(
    z.string(),
    z.object({
      ...identity,
      address: z.string(),
      port: z.number().int(),
      /** Of its settings; a process with another one is not adopted. */
      fingerprint: z.string(),
      /** Fingerprints of the provider keys it was started with. Absent: written before they were recorded. */
      keys: z.record(z.string(), z.string()).optional(),
      /** The file with which this process starts its successor; absent or null: it cannot hand over. */
      successorFile: z.string().nullable().optional(),
    }),
  ),
});

/** The running services: addresses, process ids with start times. Kept after a stop for its ports. */
export type RunFile = Readonly<z.infer<typeof runFile>>;

interface Entry {
  readonly pid: number | null;
  readonly startTime: string | null;
}

/** An entry of run.json if its process is alive. */
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

/** Reads run.json; a missing or invalid file counts as empty. */
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

/** Throws if the text is invalid. */
export function parseRunFile(text: string): RunFile {
  return runFile.parse(JSON.parse(text));
}

/** Replaces run.json; on a full disk within the space of the existing one, so that commands find a supervisor that starts there. */
export function writeRunFile(path: string, content: RunFile): void {
  const text = `${JSON.stringify(content, null, 2)}\n`;
  try {
    writeDurably(path, text);
  } catch (error) {
    if (!isFullDisk(error) || !existsSync(path) || !overwrite(path, text)) {
      throw error;
    }
  }
}

/** Unit of `blocks` in the attributes of a file (POSIX: st_blocks). */
const BLOCK_BYTES = 512;

/** False if the text needs more space than the file has. */
function overwrite(path: string, text: string): boolean {
  const file = openSync(path, "r+");
  try {
    const { size, blocks } = fstatSync(file);
    // One write: readers never see a part. Spaces, which JSON permits at the end, replace the rest of a longer text.
    const bytes = Buffer.alloc(Math.max(size, Buffer.byteLength(text)), " ");
    if (bytes.length > blocks * BLOCK_BYTES) {
      return false;
    }
    bytes.write(text);
    writeSync(file, bytes, 0, bytes.length, 0);
    return true;
  } finally {
    closeSync(file);
  }
}
