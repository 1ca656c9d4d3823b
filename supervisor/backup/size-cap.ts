import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { raiseWhile, type Alarms } from "../alerts/alarm.ts";
import { Failure } from "../../core/failure.ts";
import { removeBackup } from "./backup-files.ts";
import { backupsToKeep } from "./backup-retention.ts";
import { listBackups, newestBackup } from "./manifest.ts";
import { sizeWords } from "../../core/size.ts";
import { sum } from "../../core/sum.ts";

/** A backup and its parts. Backups may share parts, which are stored once. */
export interface MeasuredBackup {
  readonly kind: string;
  readonly name: string;
  readonly parts: readonly { readonly key: string; readonly bytes: number }[];
}

const WARN_FROM = 0.8;
const KINDS = ["postgres", "notes"] as const;

/** Total size of backups. */
export function bytesOf(backups: readonly MeasuredBackup[]): number {
  const parts = new Map(
    backups.flatMap(({ parts }) => parts.map(({ key, bytes }) => [key, bytes])),
  );
  return sum(parts.values());
}

/**
 * The oldest backups that must be removed so that the others and `coming` bytes fit into `most`. Backups at most two days older
 * than the newest of their kind, or with a date in the future, are kept; undefined if these alone are too large.
 */
export function beyondCap(
  backups: readonly MeasuredBackup[],
  most: number,
  coming: number,
  now: number,
): readonly MeasuredBackup[] | undefined {
  const kept = alwaysKept(backups, now);
  const removable = backups
    .filter((backup) => !kept.has(backup))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const uses = new Map<string, number>();
  for (const { key } of backups.flatMap(({ parts }) => parts)) {
    uses.set(key, (uses.get(key) ?? 0) + 1);
  }
  let bytes = bytesOf(backups) + coming;
  const gone: MeasuredBackup[] = [];
  while (bytes > most) {
    const oldest = removable[gone.length];
    if (oldest === undefined) {
      return undefined;
    }
    gone.push(oldest);
    for (const part of oldest.parts) {
      const others = (uses.get(part.key) ?? 0) - 1;
      uses.set(part.key, others);
      bytes -= others === 0 ? part.bytes : 0;
    }
  }
  return gone;
}

function alwaysKept(
  backups: readonly MeasuredBackup[],
  now: number,
): ReadonlySet<MeasuredBackup> {
  const ofKinds = Map.groupBy(backups, ({ kind }) => kind);
  return new Set(
    [...ofKinds.values()].flatMap((ofKind) => {
      const names = backupsToKeep(
        ofKind.map(({ name }) => name),
        { daily: 1, weekly: 0, monthly: 0 },
        "UTC",
        now,
      );
      return ofKind.filter(({ name }) => names.has(name));
    }),
  );
}

/** The backups below `backups/`, by the files that they occupy; links to one file are one part. */
export function measureBackups(root: string): readonly MeasuredBackup[] {
  return KINDS.flatMap((kind) =>
    listBackups(join(root, kind)).map((name) => {
      const directory = join(root, kind, name);
      const parts = readdirSync(directory).map((file) => {
        const { dev, ino, size } = statSync(join(directory, file));
        return { key: `${dev}:${ino}`, bytes: size };
      });
      return { kind, name, parts };
    }),
  );
}

/**
 * Before a backup of a kind: removes the oldest backups if it would not fit into `most` bytes, assuming the size of the newest
 * of its kind. Throws a Failure without removing anything if that is not enough.
 */
export function makeRoom(
  root: string,
  kind: string,
  most: number,
  now: number,
): number {
  const backups = measureBackups(root);
  const name = newestBackup(join(root, kind), now);
  const newest = backups.find(
    (each) => each.kind === kind && each.name === name,
  );
  const coming =
    newest === undefined
      ? 0
      : bytesOf(backups) - bytesOf(backups.filter((each) => each !== newest));
  // Where the newest backup of the notes shares no files, as the first one, the next one still only writes what has changed.
  const gone =
    beyondCap(backups, most, coming, now) ??
    (kind === "notes" ? beyondCap(backups, most, 0, now) : undefined);
  if (gone === undefined) {
    throw new Failure(
      `backups take ${sizeWords(bytesOf(backups))} and this one needs about ${sizeWords(coming)}, with a limit of ${sizeWords(most)}; those of the last two days are never removed: raise \`backups: at_most\`.`,
    );
  }
  for (const { kind, name } of gone) {
    removeBackup(join(root, kind), name);
  }
  return gone.length;
}

export const SIZE_FINGERPRINT = "backups-size";

/** Warns before the limit is reached; `where` names the place: "on this machine". */
export function watchSize(
  alarms: Alarms,
  fingerprint: string,
  where: string,
  used: number,
  most: number,
): void {
  raiseWhile(used >= most * WARN_FROM, alarms, {
    fingerprint,
    level: "warning",
    subject: "backups",
    text: `backups ${where} take ${sizeWords(used)} of at most ${sizeWords(most)}: at the limit, the oldest are removed early. Raise \`backups: at_most\`, or keep fewer (\`keep\` of the backup jobs).`,
    command: "hearth backup list",
  });
}

/** The same for the backups below `backups/` on this machine. */
export function watchLocalSize(
  alarms: Alarms,
  root: string,
  most: number,
): void {
  const used = bytesOf(measureBackups(root));
  watchSize(alarms, SIZE_FINGERPRINT, "on this machine", used, most);
}
