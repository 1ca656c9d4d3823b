import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import {
  compareAges,
  listBackups,
  MANIFEST_NAME,
  momentOf,
  rankBackups,
  readManifest,
} from "../../backup/manifest.ts";
import { duration, whole } from "../../config/fields.ts";
import { inWords } from "../../../core/duration.ts";
import { codeOf, textOf } from "../../../core/failure.ts";
import { sizeWords } from "../../../core/size.ts";
import { isWithin } from "../../../core/clock-jumps.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  warning,
  okUnless,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";

export const backupCheck = z.strictObject({
  ...everyCheck({ every: "10m", fail_after: 1, recover_after: 1 }),
  kind: z.literal("backup"),
  directory: z.string().min(1),
  expect: z
    .strictObject({
      younger_than: duration.prefault("26h"),
      bytes_above: whole(0, Number.MAX_SAFE_INTEGER).default(0),
    })
    .prefault({}),
});

/** One backup of any program. */
interface Copy {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly bytes: number;
}

/** Age and size of the newest backup. Of Hearth's own backups, every file must be complete; otherwise the newest file counts. */
export async function probeBackup(
  { directory, expect }: z.output<typeof backupCheck>,
  { now, watchedSince }: ProbeContext,
): Promise<ProbeResult> {
  const own = rankBackups(listBackups(directory), now);
  let copies: readonly Copy[];
  try {
    copies =
      own.length > 0
        ? await Promise.all(
            own.slice(0, 2).map((name) => copyOf(directory, name)),
          )
        : await filesIn(directory, now);
  } catch (error) {
    return failing(`cannot read the newest backup: ${textOf(error)}`);
  }
  const [newest, previous] = copies;
  if (newest === undefined) {
    return none(now - watchedSince, expect.younger_than);
  }
  const age = now - newest.at;
  return okUnless(
    [
      !isWithin(newest.at, expect.younger_than, now) &&
        `no backup is younger than ${inWords(expect.younger_than)}`,
      newest.bytes <= expect.bytes_above &&
        `the newest backup is not larger than ${expect.bytes_above} bytes`,
      previous !== undefined &&
        newest.bytes * 2 < previous.bytes &&
        `the newest backup is less than half as large as the previous one (${sizeWords(previous.bytes)})`,
    ],
    `${newest.name}, ${inWords(Math.abs(age))} ${age < 0 ? "ahead of the clock" : "old"}, ${sizeWords(newest.bytes)}`,
    { age_ms: age, bytes: newest.bytes },
  );
}

/** A backup is incomplete if the sizes of its files differ from its manifest. */
async function copyOf(directory: string, name: string): Promise<Copy> {
  const { files } = readManifest(join(directory, name));
  let { size: bytes } = await stat(join(directory, name, MANIFEST_NAME));
  for (const file of files) {
    const there = await stat(join(directory, name, file.name));
    if (there.size !== file.bytes) {
      throw new Error(
        `${name}/${file.name} has ${there.size} bytes instead of ${file.bytes}`,
      );
    }
    bytes += there.size;
  }
  return { name, at: momentOf(name) ?? 0, bytes };
}

async function filesIn(
  directory: string,
  now: number,
): Promise<readonly Copy[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(
    (error: unknown) => {
      if (codeOf(error) === "ENOENT") {
        return [];
      }
      throw error;
    },
  );
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
      .map(async ({ name }) => {
        const { mtimeMs, size: bytes } = await stat(join(directory, name));
        return { name, at: mtimeMs, bytes };
      }),
  );
  const compare = compareAges(now);
  return files.toSorted((a, b) => compare(a.at, b.at));
}

/** Before the first backup is due, there may be none. */
function none(watchedForMs: number, youngerThan: number): ProbeResult {
  return watchedForMs < youngerThan
    ? { ok: true, text: "no backup yet; the first is not due" }
    : warning(`no backup in ${inWords(watchedForMs)}`);
}
