import type { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { readable } from "../../../core/words.ts";
import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import { listTeams, teamName } from "../../../supervisor/gateway/owners.ts";
import { listPersonalActs } from "../../../supervisor/history/personal-acts.ts";
import { addDays, beginningOf } from "../../../supervisor/reports/period.ts";
import { KEYS_PATH } from "../nouns/noun-context.ts";
import { TEAM_ADDRESS } from "../nouns/team-address.ts";
import { USER_ADDRESS } from "../nouns/user-address.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { changesIn } from "./audit-changes.ts";
import type { AuditChoice } from "./audit-choice.ts";

/** An entry of either record. */
export interface AuditEntry {
  /** Continues a list after it. */
  readonly cursor: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly author: string;
  readonly action: string;
  readonly type: string;
  readonly object: string;
  /** The id, where it is not the name. */
  readonly id: string;
  /** Its page; null if it has none. */
  readonly href: string | null;
  readonly changes: readonly string[];
}

export interface AuditContext {
  readonly api: AdminApi;
  /** The supervisor's history. */
  readonly db: DatabaseSync;
  /** IANA name. */
  readonly timeZone: string;
}

const row = z.record(z.string(), z.unknown()).nullable();
const entries = z.array(
  z.object({
    id: z.number(),
    at: z.string(),
    actor: z.string(),
    action: z.string(),
    object_type: z.string(),
    object_id: z.string(),
    before: row,
    after: row,
  }),
);

/** The entries of a choice, newest first, at most `limit`. */
export async function readEntries(
  context: AuditContext,
  choice: AuditChoice,
  limit: number,
): Promise<readonly AuditEntry[]> {
  return choice.source === "console"
    ? readConsole(context, choice, limit)
    : readAudit(context.api, choice, limit);
}

/** The gateway's audit log. */
export async function readAudit(
  api: AdminApi,
  choice: Omit<AuditChoice, "source">,
  limit: number,
): Promise<readonly AuditEntry[]> {
  const { author, action, type, object, from, until, before } = choice;
  const query = {
    page_size: String(limit),
    actor: author,
    action,
    object_type: type,
    object_id: object,
    start_date: from,
    end_date: until,
    before,
  };
  const sent = Object.entries(query).filter(([, value]) => value !== "");
  const [answer, teams] = await Promise.all([
    api.ask("GET", withQuery("/audit", Object.fromEntries(sent))),
    listTeams(api),
  ]);
  const names = new Map(teams.map((team) => [team.team_id, teamName(team)]));
  const named = entries.parse(answer).map((entry) =>
    entry.object_type === "team"
      ? entry
      : {
          ...entry,
          before: withTeamName(entry.before, names),
          after: withTeamName(entry.after, names),
        },
  );
  return named.map((entry) => ({
    cursor: String(entry.id),
    at: Date.parse(entry.at),
    author: readable(entry.actor),
    action: entry.action.replaceAll("_", " "),
    type: entry.object_type,
    object: objectOf(entry),
    id: entry.object_id,
    href:
      entry.action === "deleted"
        ? null
        : hrefOf(entry.object_type, entry.object_id),
    changes: changesIn(entry.before, entry.after, entry.object_id),
  }));
}

const NAMES = [
  "key_alias",
  "key_name",
  "user_alias",
  "user_email",
  "team_alias",
  "organization_alias",
  "model_name",
] as const;

/** The row with the name of its team in place of the id, unless the team is gone. */
function withTeamName(
  of: z.infer<typeof row>,
  names: ReadonlyMap<string, string>,
): z.infer<typeof row> {
  const name = names.get(String(of?.["team_id"]));
  return name === undefined ? of : { ...of, team_id: name };
}

function objectOf({
  before,
  after,
  object_type: type,
  object_id: id,
}: z.infer<typeof entries>[number]): string {
  const of = after ?? before;
  const { user_id: user, team_id: team } = of ?? {};
  return type === "member" &&
    typeof user === "string" &&
    typeof team === "string"
    ? readable(`${user} in ${team}`)
    : nameOf(of, id);
}

function nameOf(of: z.infer<typeof row>, id: string): string {
  const name = NAMES.map((each) => of?.[each]).find(
    (each) => typeof each === "string",
  );
  return readable(typeof name === "string" ? name : id);
}

function hrefOf(type: string, id: string): string | null {
  switch (type) {
    case "key":
      return `${KEYS_PATH}/${encodeURIComponent(id)}`;
    case "user":
      return USER_ADDRESS.href(id);
    case "team":
      return TEAM_ADDRESS.href(id);
    default:
      return null;
  }
}

function readConsole(
  { db, timeZone }: AuditContext,
  { author, object, from, until, before }: AuditChoice,
  limit: number,
): readonly AuditEntry[] {
  const acts = listPersonalActs(
    db,
    {
      author,
      name: object,
      ...(from === "" ? {} : { from: beginningOf(from, timeZone) }),
      ...(until === ""
        ? {}
        : { until: beginningOf(addDays(until, 1), timeZone) }),
      before,
    },
    limit,
  );
  return acts.map((act) => ({
    cursor: act.cursor,
    at: act.at,
    author: readable(act.author),
    action: "",
    type: "",
    object: readable(act.name),
    id: act.name,
    href: null,
    changes: [readable(act.text)],
  }));
}
