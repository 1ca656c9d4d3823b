import { momentOf, rankBackups } from "../../../supervisor/backup/manifest.ts";
import { sizeWords } from "../../../core/size.ts";
import type { JobView } from "../../../supervisor/jobs/runner.ts";
import type { VaultView } from "../../../supervisor/vaults/overview.ts";
import type {
  Roster,
  RosterDevice,
} from "../../../supervisor/vaults/roster.ts";
import type { Field } from "../field.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, ahead, capital, grouped, moment } from "../../../core/words.ts";
import { deviceRows } from "./device-rows.ts";

export interface VaultFacts {
  readonly view: VaultView;
  /** Null where its database is missing. */
  readonly roster: Roster | null;
  /** When its access was closed, milliseconds since 1970. */
  readonly closedSince: number | null;
  /** Null where its credentials are not stored here. */
  readonly encrypted: boolean | null;
}

export interface NotesFacts {
  readonly vaults: readonly VaultFacts[];
  /** Why the store is unavailable. */
  readonly away: string | null;
  /** Names of the backups. */
  readonly backups: readonly string[];
  /** notes-backup and notes-drill. */
  readonly backupJob: JobView | undefined;
  readonly drillJob: JobView | undefined;
  readonly addFields: readonly Field[];
  /** The form is shown again, with its mistakes. */
  readonly adding: boolean;
  readonly timeZone: string;
  readonly now: number;
}

/** A problem that needs a person. */
interface Problem {
  readonly look: "bad" | "warn";
  /** A sentence. */
  readonly text: string;
  /** Null when it concerns no vault. */
  readonly vault: string | null;
  readonly since: string;
  readonly command: string;
}

const MAX_COUNTED_CONFLICTS = 100;

/** The problems of a vault, worst first. */
export function problemsOf(
  { view, roster, closedSince }: VaultFacts,
  now: number,
): readonly Problem[] {
  const { vault, conflicts } = view;
  const since = closedSince === null ? "" : ago(closedSince, now);
  return [
    ...troubleOf(view).map((trouble) => ({
      look: "bad" as const,
      vault,
      since: view.state === "closed" ? since : "",
      ...trouble,
    })),
    ...view.problems.map((text) => ({
      look: "bad" as const,
      vault,
      since: "",
      text,
      command: "hearth doctor",
    })),
    ...(roster?.locked === true
      ? [
          {
            look: "warn" as const,
            vault,
            since: "",
            text: roster.remarks[0] ?? `A device has locked vault ${vault}.`,
            command: `hearth notes devices ${vault}`,
          },
        ]
      : []),
    ...(conflicts > 0
      ? [
          {
            look: "warn" as const,
            vault,
            since: "",
            text: `${conflictWords(conflicts)} in ${vault}.`,
            command: `hearth notes conflicts ${vault}`,
          },
        ]
      : []),
  ];
}

/** Why devices cannot sync, if they cannot. */
function troubleOf({
  vault,
  state,
}: VaultView): readonly Pick<Problem, "text" | "command">[] {
  switch (state) {
    case "gone":
      return [
        {
          text: `The database of vault ${vault} is missing.`,
          command: `hearth notes restore --vault ${vault}`,
        },
      ];
    case "damaged":
      return [
        {
          text: `The database of vault ${vault} is damaged.`,
          command: `hearth notes remove ${vault}`,
        },
      ];
    case "newer":
      return [
        {
          text: `Vault ${vault} was written by a newer version of Hearth.`,
          command: "hearth upgrade",
        },
      ];
    case "unreadable":
      return [
        {
          text: `The database of vault ${vault} cannot be read.`,
          command: "hearth logs notes",
        },
      ];
    case "closed":
      return [
        {
          text: `Vault ${vault} is closed: its security seed changed.`,
          command: `hearth notes restore-seed ${vault}`,
        },
      ];
    case "open":
    case "foreign":
      return [];
  }
}

function conflictWords(count: number): string {
  if (count === 1) {
    return "1 unresolved conflict";
  }
  return count >= MAX_COUNTED_CONFLICTS
    ? `${MAX_COUNTED_CONFLICTS} or more unresolved conflicts`
    : `${count} unresolved conflicts`;
}

/** The heading of several vaults. */
function judge(
  { away, vaults }: NotesFacts,
  problems: readonly Problem[],
): { readonly title: string; readonly look: Look } {
  if (away !== null) {
    return { title: "The notes store is unavailable.", look: "bad" };
  }
  const [first] = problems;
  if (first === undefined) {
    return vaults.length === 0
      ? { title: "No vaults yet.", look: "none" }
      : { title: "All vaults are healthy.", look: "ok" };
  }
  return {
    title:
      problems.length === 1
        ? first.text
        : `${problems.length} issues need attention.`,
    look: problems.some(({ look }) => look === "bad") ? "bad" : "warn",
  };
}

/** All vaults, problems first. */
export function viewNotes(facts: NotesFacts) {
  const { vaults, now } = facts;
  const problems = [
    ...vaults
      .flatMap((vault) => problemsOf(vault, now))
      .toSorted((a, b) => Number(b.look === "bad") - Number(a.look === "bad")),
    ...failedJobs(facts),
  ];
  const devices = vaults.flatMap(({ roster }) =>
    roster === null ? [] : deviceRows(roster, now),
  );
  return {
    ...judge(facts, problems),
    away: facts.away === null ? null : capital(facts.away),
    problems,
    figures: figuresOf(
      facts,
      vaults.flatMap(({ roster }) => roster?.devices ?? []),
    ),
    vaults: vaults.map((each) => viewVaultRow(each, now)),
    devices,
    // A device of several vaults is named once.
    remarks: [
      ...new Set(
        vaults.flatMap(({ roster }) =>
          (roster?.remarks ?? []).slice(roster?.locked === true ? 1 : 0),
        ),
      ),
    ],
    addFields: facts.addFields,
    adding: facts.adding,
    subline: sublineOf(facts),
  };
}

function failedJobs({
  backupJob,
  drillJob,
  now,
}: NotesFacts): readonly Problem[] {
  return [backupJob, drillJob].flatMap((job) =>
    job?.last?.status === "failed" && job.running === null
      ? [
          {
            look: "warn" as const,
            vault: null,
            since: ago(job.last.endedAt ?? job.last.startedAt, now),
            text: `${job.name} failed: ${job.last.text}`,
            command: `hearth jobs run ${job.name}`,
          },
        ]
      : [],
  );
}

function figuresOf(facts: NotesFacts, devices: readonly RosterDevice[]) {
  const { vaults, away, drillJob, now } = facts;
  const lastSeen = Math.max(0, ...devices.map((each) => each.lastSeen));
  const conflicts = vaults.reduce((sum, { view }) => sum + view.conflicts, 0);
  return [
    backupFigure(facts),
    { name: "Last restore drill", ...jobFigure(drillJob, now) },
    {
      name: "Conflicts",
      value: away === null ? grouped(conflicts) : "–",
      note: away === null ? decisionsIn(conflicts) : "",
    },
    {
      name: "Devices",
      value: away === null ? grouped(devices.length) : "–",
      note: lastSeen === 0 ? "" : `last seen ${ago(lastSeen, now)}`,
    },
  ];
}

function decisionsIn(conflicts: number): string {
  return conflicts === 0 ? "no decisions pending" : "see the vaults below";
}

function sublineOf({ vaults, backupJob, timeZone }: NotesFacts): string {
  return [
    ...(vaults.length === 0
      ? []
      : [vaults.length === 1 ? "1 vault" : `${vaults.length} vaults`]),
    ...(backupJob?.nextAt == null
      ? []
      : [`next backup ${moment(backupJob.nextAt, timeZone)}`]),
  ].join(" · ");
}

function backupFigure({ backups, backupJob, now }: NotesFacts) {
  const [newest] = rankBackups(backups, now);
  const at = newest === undefined ? undefined : momentOf(newest);
  const nextAt = backupJob?.nextAt ?? null;
  return {
    name: "Last backup",
    value: at === undefined ? "none yet" : ago(at, now),
    note: [
      ...(at === undefined ? [] : [`${backups.length} kept`]),
      ...(nextAt === null ? [] : [`next ${ahead(nextAt, now)}`]),
    ].join(", "),
  };
}

function jobFigure(job: JobView | undefined, now: number) {
  const { last = null, nextAt = null } = job ?? {};
  return {
    value:
      last === null
        ? "none yet"
        : last.status === "done"
          ? ago(last.startedAt, now)
          : `${last.status} ${ago(last.startedAt, now)}`,
    note: nextAt === null ? "" : `next ${ahead(nextAt, now)}`,
  };
}

function viewVaultRow(facts: VaultFacts, now: number) {
  const { view, roster, encrypted } = facts;
  return {
    name: view.vault,
    path: `/notes/${encodeURIComponent(view.vault)}`,
    ...stateWords(view),
    encrypted: encryptionWords(encrypted),
    documents: grouped(view.documents),
    size: sizeWords(view.fileBytes),
    reclaimable: sizeWords(view.reclaimableBytes),
    compacted: view.compactedAt === null ? "never" : ago(view.compactedAt, now),
    conflicts: grouped(view.conflicts),
    devices: grouped(roster?.devices.length ?? 0),
    seed: seedWords(facts),
  };
}

export function stateWords({ state, conflicts }: VaultView): {
  readonly look: Look;
  readonly state: string;
} {
  switch (state) {
    case "open":
      return { look: conflicts > 0 ? "warn" : "ok", state: "open" };
    case "closed":
      return { look: "bad", state: "closed" };
    case "gone":
      return { look: "bad", state: "missing" };
    case "damaged":
      return { look: "bad", state: "damaged" };
    case "newer":
      return { look: "bad", state: "of a newer version" };
    case "unreadable":
      return { look: "bad", state: "unreadable" };
    case "foreign":
      return { look: "none", state: "not managed by Hearth" };
  }
}

export function encryptionWords(encrypted: boolean | null): string {
  if (encrypted === null) {
    return "";
  }
  return encrypted ? "encrypted on the devices" : "readable on the server";
}

export function seedWords({ view, encrypted }: VaultFacts): string {
  if (view.state === "closed") {
    return "changed";
  }
  if (view.seeds > 0) {
    return "stored in two places";
  }
  return encrypted === false ? "not needed" : "none yet";
}
