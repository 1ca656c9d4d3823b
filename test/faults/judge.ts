import { INPUT_PRICE, OUTPUT_PRICE } from "../servers/gateway.ts";
import { entityOfKey, type Budget } from "./accounts.ts";
import type { Received } from "./calls.ts";
import { readLimits } from "./redis-limits.ts";
import type { Testbed } from "./testbed.ts";

/** The findings of a campaign; all except the first group must be zero. */
export interface Verdict {
  readonly campaign: string;
  readonly calls: number;
  /** Ids that reached the provider, and those whose responses it completed. */
  readonly idsAtProvider: number;
  readonly idsFinished: number;
  readonly idsInLedger: number;
  readonly interrupted: number;
  readonly budgetHeld: number;
  readonly budgetExceeded: number;
  /** (spend − budget) ÷ the most expensive call of that payer. */
  readonly largestOvershoot: number;

  /** Ids that reached the provider and are not in the ledger. */
  readonly missing: number;
  readonly doubled: number;
  /** Rows with success although the provider did not complete the response and the client did not disconnect. */
  readonly invented: number;
  /** Complete responses without a row with success. */
  readonly unbilled: number;
  readonly overshoots: number;
  readonly phantoms: number;
  readonly leakedLeases: number;
  /** Rows of `spend_check`, rows with a wrong price, counters in Redis that differ from the ledger. */
  readonly wrongSums: number;
  /** 401 for a valid key, 500, calls that never end, incomplete responses without a cause. */
  readonly wrongAnswers: number;
  /** Gateways that ended without being killed. */
  readonly ended: number;
  /** Examples of each finding. */
  readonly details: readonly string[];
}

export const ZEROS = [
  "missing",
  "doubled",
  "invented",
  "unbilled",
  "overshoots",
  "phantoms",
  "leakedLeases",
  "wrongSums",
  "wrongAnswers",
  "ended",
] as const satisfies readonly (keyof Verdict)[];

export function isClean(verdict: Verdict): boolean {
  return ZEROS.every((name) => verdict[name] === 0);
}

/** Combines the verdicts of several testbeds. */
export function combined(
  campaign: string,
  verdicts: readonly Verdict[],
): Verdict {
  const [first, ...others] = verdicts;
  if (first === undefined) {
    throw new Error("no verdict to combine");
  }
  return others.reduce((sum, verdict) => add(campaign, sum, verdict), {
    ...first,
    campaign,
  });
}

function add(campaign: string, one: Verdict, other: Verdict): Verdict {
  const sums = Object.entries(one).flatMap(([name, value]) => {
    const more = other[name as keyof Verdict];
    return typeof value === "number" && typeof more === "number"
      ? [[name, value + more]]
      : [];
  });
  return {
    ...one,
    ...(Object.fromEntries(sums) as Partial<Verdict>),
    campaign,
    largestOvershoot: Math.max(one.largestOvershoot, other.largestOvershoot),
    details: [...one.details, ...other.details],
  };
}

interface Row {
  readonly request_id: string;
  readonly status: "success" | "failure" | "interrupted";
  readonly spend: number;
  readonly ended_at: Date;
  readonly api_key: string | null;
  readonly user_id: string | null;
  readonly user_pays: boolean;
  readonly team_id: string | null;
  readonly tags: readonly string[] | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly left_by_client: boolean;
}

/** Amounts are compared to a precision of one nano-dollar per call. */
const NANO = 1e-9;
const TOLERANCE = 100 * NANO;
const MAX_EXAMPLES = 5;
const MAX_OUTPUT_CHARACTERS = 2_000;

/** Compares the responses of the clients, the provider's record and the ledger. All calls must have ended. */
export async function judge(
  campaign: string,
  testbed: Testbed,
  received: readonly Received[],
  budgets: readonly Budget[],
  leaks: readonly string[],
): Promise<Verdict> {
  const details: string[] = [];
  function count(what: string, found: readonly string[]): number {
    for (const one of found.slice(0, MAX_EXAMPLES)) {
      details.push(`${what}: ${one}`);
    }
    return found.length;
  }

  const rows = await readRows(testbed);
  const byId = new Map<string, Row>();
  const doubled: string[] = [];
  for (const row of rows) {
    if (byId.has(row.request_id)) {
      doubled.push(row.request_id);
    }
    byId.set(row.request_id, row);
  }
  const { requests: asked } = testbed.provider;
  const finished = testbed.provider.finished();
  const reached = new Set([...asked, ...finished]);
  const spending = budgets.map((budget) => spendingOf(budget, rows));
  const overshoot = spending.map(overshootOf);
  return {
    campaign,
    calls: received.length,
    idsAtProvider: reached.size,
    idsFinished: finished.size,
    idsInLedger: byId.size,
    interrupted: rows.filter(({ status }) => status === "interrupted").length,
    budgetHeld: received.filter(({ end }) => end === "budget_held").length,
    budgetExceeded: received.filter(({ end }) => end === "budget_exceeded")
      .length,
    largestOvershoot: Math.max(0, ...overshoot),
    missing: count(
      "missing",
      [...reached].filter((id) => !byId.has(id)),
    ),
    doubled: count("doubled", doubled),
    invented: count(
      "invented",
      rows
        .filter(
          (row) =>
            row.status === "success" &&
            !row.left_by_client &&
            !finished.has(row.request_id),
        )
        .map((row) => row.request_id),
    ),
    unbilled: count("unbilled", unbilled(received, byId)),
    overshoots: count(
      "overshoot",
      spending
        .filter((one, at) => (overshoot[at] ?? 0) >= one.budget.allowance)
        .map(({ budget, spend }) => `${JSON.stringify(budget)} spent ${spend}`),
    ),
    phantoms: count("phantom", phantoms(received, spending)),
    leakedLeases: count("leaked", leaks),
    wrongSums: count("wrong sum", await wrongSums(testbed, rows)),
    wrongAnswers: count("wrong answer", wrongAnswers(received)),
    ended: count(
      "ended unexpectedly",
      testbed.gateways
        .filter((gateway) => !gateway.running())
        .map(
          ({ name, output }) =>
            `${name}: ${output().slice(-MAX_OUTPUT_CHARACTERS)}`,
        ),
    ),
    details,
  };
}

function readRows(testbed: Testbed): Promise<readonly Row[]> {
  return testbed.sql<Row & { [name: string]: unknown }>(
    `SELECT request_id, status, spend::float8 AS spend, ended_at, api_key, user_id, user_pays, team_id, tags,
       prompt_tokens::int AS prompt_tokens, completion_tokens::int AS completion_tokens,
       coalesce(metadata ->> 'client_disconnected' = 'true', false) AS left_by_client
     FROM spend_log WHERE payer IS NULL ORDER BY ended_at`,
  );
}

function unbilled(
  received: readonly Received[],
  byId: ReadonlyMap<string, Row>,
): readonly string[] {
  return received
    .filter(({ end, callId }) => {
      if (end !== "ok" || callId === null) {
        return false;
      }
      const row = byId.get(callId);
      return row?.status !== "success" || row.spend <= 0;
    })
    .map(({ callId }) => `${callId} ${byId.get(callId ?? "")?.status}`);
}

interface Spending {
  readonly budget: Budget;
  /** Rows of its last window, ordered by their end. */
  readonly rows: readonly Row[];
  readonly spend: number;
}

function spendingOf(budget: Budget, rows: readonly Row[]): Spending {
  const paid = rows.filter((row) => pays(budget.entity, row));
  const lastDay = dayOf(paid.at(-1)?.ended_at);
  const counted = budget.daily
    ? paid.filter((row) => dayOf(row.ended_at) === lastDay)
    : paid;
  const spend = counted.reduce((sum, row) => sum + row.spend, 0);
  return { budget, rows: counted, spend };
}

function pays(entity: string, row: Row): boolean {
  const colon = entity.indexOf(":");
  const id = entity.slice(colon + 1);
  switch (entity.slice(0, colon)) {
    case "key":
      return row.api_key === id;
    case "user":
      return row.user_id === id && row.user_pays;
    case "team":
      return row.team_id === id;
    case "tag":
      return row.tags?.includes(id) ?? false;
    default:
      throw new Error(`no rule for ${entity}`);
  }
}

function dayOf(at: Date | undefined): string {
  return at?.toISOString().slice(0, "2026-01-01".length) ?? "";
}

function overshootOf({ budget, rows, spend }: Spending): number {
  const highest = Math.max(NANO, ...rows.map((row) => row.spend));
  const over = spend - budget.dollars - NANO * rows.length;
  return Math.max(0, over) / highest;
}

/** Responses `budget_exceeded` at a time when all calls that had ended cost less than the budget. */
function phantoms(
  received: readonly Received[],
  spending: readonly Spending[],
): readonly string[] {
  const byEntity = new Map(spending.map((one) => [one.budget.entity, one]));
  return received
    .filter(({ end }) => end === "budget_exceeded")
    .flatMap(({ account, at, message }) => {
      const one = byEntity.get(entityIn(message, account.key));
      if (one === undefined) {
        return [`unknown budget: ${message}`];
      }
      if (one.budget.daily && dayOf(new Date(at)) !== dayOf(lastEnd(one))) {
        return [];
      }
      const before = one.rows.filter((row) => row.ended_at.getTime() <= at);
      const spend = before.reduce((sum, row) => sum + row.spend, 0);
      return spend + NANO * (before.length + 1) < one.budget.dollars
        ? [
            `${one.budget.entity}: ${message} (spend in the ledger until ${at}: ${spend})`,
          ]
        : [];
    });
}

function lastEnd({ rows }: Spending): Date | undefined {
  return rows.at(-1)?.ended_at;
}

/** The payer that an error names: `User=… `, `Team=… `, `Tag=… `; otherwise the key. */
function entityIn(message: string, key: string): string {
  const named = /\b(User|Team|Tag)=(\S+) Current/.exec(message);
  return named === null
    ? entityOfKey(key)
    : `${named[1]?.toLowerCase()}:${named[2]}`;
}

async function wrongSums(
  testbed: Testbed,
  rows: readonly Row[],
): Promise<readonly string[]> {
  const sums = await testbed.sql("SELECT * FROM spend_check");
  const prices = rows.filter((row) => {
    const whole = row.status === "success" && !row.left_by_client;
    const price =
      row.prompt_tokens * INPUT_PRICE + row.completion_tokens * OUTPUT_PRICE;
    return whole && (row.prompt_tokens !== 10 || differ(row.spend, price));
  });
  const free = rows.filter(
    (row) =>
      row.spend <= 0 && (row.left_by_client || row.status === "interrupted"),
  );
  return [
    ...sums.map((row) => JSON.stringify(row)),
    ...prices.map((row) => `price of ${JSON.stringify(row)}`),
    ...free.map((row) => `free ${JSON.stringify(row)}`),
    ...(await wrongCounters(testbed)),
  ];
}

function differ(one: number, other: number): boolean {
  return Math.abs(one - other) > NANO;
}

/** Counters of Redis' current generation must equal the ledger's totals, with nothing pending, once the journals are drained. */
async function wrongCounters(testbed: Testbed): Promise<readonly string[]> {
  const rows = await testbed.sql<{
    name: string;
    spend: number;
    version: number;
  }>(
    "SELECT entity || '|' || window_name AS name, spend::float8 AS spend, version::float8 AS version FROM spend_totals",
  );
  const totals = new Map(rows.map((row) => [row.name, row]));
  const limits = await readLimits(testbed);
  return limits.flatMap(({ entity, windows }) =>
    windows.flatMap(({ name, current, total, version, pending }) => {
      const known = totals.get(`${entity}|${name}`);
      const ahead = total * NANO - (known?.spend ?? 0);
      const wrong: string[] = [];
      if (pending !== 0) {
        wrong.push(`${entity} ${name}: ${pending} nanos still pending`);
      }
      // A counter that has not been used since may be older than the ledger, but never ahead of it.
      const same = version === (known?.version ?? 0);
      if (current && (same ? Math.abs(ahead) > TOLERANCE : ahead > TOLERANCE)) {
        wrong.push(
          `${entity} ${name}: ${total} nanos in Redis, ${known?.spend} in the ledger`,
        );
      }
      return wrong;
    }),
  );
}

const EXPECTED_ENDS = new Set([
  "ok",
  "left",
  "cut",
  "unreachable",
  "stream_error",
  "budget_exceeded",
  "budget_held",
  "rate_limit_exceeded",
  "database_unavailable",
  "limits_unavailable",
  "stopping",
]);

function wrongAnswers(received: readonly Received[]): readonly string[] {
  return received
    .filter(({ end }) => !EXPECTED_ENDS.has(end))
    .map(({ end, status, message }) => `${end} ${status} ${message}`);
}
