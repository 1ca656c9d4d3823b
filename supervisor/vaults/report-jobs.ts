import { inWords } from "../../core/duration.ts";
import { raiseWhile } from "../alerts/alarm.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { findConflicts, type ConflictReport } from "./conflicts.ts";
import { Database, vaultNames } from "./database.ts";
import { forEveryVault } from "./every-vault.ts";
import type { NotesJobParts } from "./job-parts.ts";
import { readRoster, type Roster } from "./roster.ts";
import { fingerprints } from "./vault-alarms.ts";
import { counted } from "../../core/words.ts";

/** Maximum number of conflicts in a report. */
export const MAX_CONFLICTS = 500;

/** Reports the open conflicts of every vault; old ones raise an alarm. */
export async function conflicts(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const reports: ConflictReport[] = [];
  await forEveryVault(
    parts.couch,
    await vaultNames(parts.couch),
    async (name) => {
      const report = await findConflicts(
        new Database(parts.couch, name),
        parts.state,
        context.now(),
        MAX_CONFLICTS,
        context.signal,
      );
      reports.push(report);
      alarmOfOldConflicts(parts, report, context.now());
    },
  );
  const open = reports.filter((report) => report.conflicts.length > 0);
  return {
    status: "done",
    summary:
      open.length === 0
        ? "there are no conflicts."
        : `${open.map(({ vault, conflicts, more }) => `${vault}: ${more ? "more than " : ""}${conflicts.length} conflicted`).join("; ")}.`,
    details: { vaults: reports },
  };
}

function alarmOfOldConflicts(
  { alarms, config }: NotesJobParts,
  { vault, conflicts }: ConflictReport,
  now: number,
): void {
  // Infinity without conflicts.
  const oldest = Math.min(...conflicts.map(({ firstSeen }) => firstSeen));
  const isOld = now - oldest >= config.notes.conflicts_alarm_after;
  raiseWhile(isOld, alarms, {
    fingerprint: fingerprints.conflicts(vault),
    level: "warning",
    subject: `vault ${vault}`,
    text: `${counted(conflicts.length, "note")} of vault ${vault} ${conflicts.length === 1 ? "is" : "are"} conflicted, the oldest for ${inWords(now - oldest)}: open them on a device and merge, or resolve them.`,
    command: `hearth notes conflicts ${vault}`,
  });
}

/** Reports every vault's devices; a locked vault raises an alarm. */
export async function devices(parts: NotesJobParts): Promise<JobOutcome> {
  const rosters: Roster[] = [];
  await forEveryVault(
    parts.couch,
    await vaultNames(parts.couch),
    async (name) => {
      const roster = await readRoster(new Database(parts.couch, name));
      rosters.push(roster);
      raiseWhile(roster.locked, parts.alarms, {
        fingerprint: fingerprints.locked(name),
        level: "warning",
        subject: `vault ${name}`,
        text: roster.remarks[0] ?? `vault ${name} is locked.`,
        command: `hearth notes devices ${name}`,
      });
    },
  );
  const remarks = rosters.flatMap((roster) => roster.remarks);
  const count = rosters.reduce((sum, roster) => sum + roster.devices.length, 0);
  return {
    status: "done",
    summary:
      remarks.length === 0
        ? `${counted(count, "device")}; no action needed.`
        : remarks.join(" "),
    details: { vaults: rosters },
  };
}
