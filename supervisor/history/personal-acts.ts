import type { DatabaseSync } from "node:sqlite";
import { OPERATOR } from "./author.ts";

/** What a person did at the console or by a command. */
interface PersonalAct {
  /** Continues a list: earlier acts have lower ones. */
  readonly cursor: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** "operator", or a person such as `anna@example.org (authelia)`. */
  readonly author: string;
  /** A service, a check, an alarm, a job, `notes` or `invitations`. */
  readonly name: string;
  readonly text: string;
}

interface PersonalActFilter {
  /** A part of the author's name. */
  readonly author?: string;
  /** A part of what was changed. */
  readonly name?: string;
  /** Milliseconds since 1970: from, and before. */
  readonly from?: number;
  readonly until?: number;
  /** Only acts before this place. */
  readonly before?: string;
}

/** Of a table in which most rows are transitions of checks. */
const BY_A_PERSON =
  "(to_state IN ('asked', 'restart-asked', 'paused') OR from_state = 'paused')";

export const PERSONAL_ACTS_INDEX = `CREATE INDEX events_by_people ON events (at, id) WHERE ${BY_A_PERSON}`;

/**
 * Events, and runs of jobs on demand. The sentence of an event ends with its author, unless that is the operator
 * (author.ts).
 */
const ACTS = `
  SELECT at, 'event' AS kind, id, name, NULL AS author,
      CASE WHEN to_state IN ('asked', 'restart-asked') THEN coalesce(reason, '') ELSE to_state || ': ' || coalesce(reason, '') END AS text
    FROM events WHERE ${BY_A_PERSON}
  UNION ALL
  SELECT started_at, 'run', id, 'job ' || job, coalesce(asked_by, '${OPERATOR}'), 'run ' || id || ' started'
    FROM job_runs WHERE due IS NULL`;

const CURSOR = /^(\d{1,15})-(event|run)-(\d{1,15})$/;

/** Newest first. */
export function listPersonalActs(
  db: DatabaseSync,
  { author = "", name = "", from, until, before }: PersonalActFilter,
  limit: number,
): readonly PersonalAct[] {
  const [, at, kind, id] = CURSOR.exec(before ?? "") ?? [];
  const found: PersonalAct[] = [];
  const rows = db
    .prepare(
      `SELECT * FROM (${ACTS})
         WHERE at >= ?1 AND at < ?2 AND (?3 IS NULL OR (at, kind, id) < (?3, ?4, ?5)) AND instr(lower(name), ?6) > 0
         ORDER BY at DESC, kind DESC, id DESC`,
    )
    .iterate(
      from ?? 0,
      until ?? Number.MAX_SAFE_INTEGER,
      at === undefined ? null : Number(at),
      kind ?? null,
      id === undefined ? null : Number(id),
      name.toLowerCase(),
    );
  for (const row of rows) {
    const act = actOf(row);
    if (act.author.toLowerCase().includes(author.toLowerCase())) {
      found.push(act);
    }
    if (found.length === limit) {
      break;
    }
  }
  return found;
}

function actOf(row: Readonly<Record<string, unknown>>): PersonalAct {
  const text = String(row["text"]);
  return {
    cursor: `${String(row["at"])}-${String(row["kind"])}-${String(row["id"])}`,
    at: Number(row["at"]),
    author: row["author"] === null ? authorIn(text) : String(row["author"]),
    name: String(row["name"]),
    text,
  };
}

/** Authors other than the operator end with their provider in parentheses. */
function authorIn(text: string): string {
  return (
    /\bby (?!the operator)(\S.* \([^()]+\))\.?$/.exec(text)?.[1] ?? OPERATOR
  );
}
