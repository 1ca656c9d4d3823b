import { z } from "zod";
import { CANCELLED, type Attempt } from "../../calls/attempt.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { out } from "../kinds/out.ts";

const deployment = z
  .object({
    model_id: out.text,
    model_group: out.text.nullable().meta({
      description: "null: it is no longer known.",
    }),
    provider: out.text.nullable(),
    model: out.text.nullable(),
    api_base: out.text.nullable(),
  })
  .nullable();

/**
 * What happened to a call, in order: deployments that were cooling down, failed attempts, and the end. `fallback`: the first
 * attempt of another model than the one called; `retry`: another attempt of the same one.
 */
export const pathOfCall = z
  .array(
    z.object({
      kind: z.enum(["passed_over", "attempt", "answer", "cache", "end"]),
      as: z.enum(["first", "retry", "fallback"]).nullable(),
      deployment,
      status: out.count.nullable(),
      error: out.text.nullable(),
      outrun: z.boolean().meta({
        description:
          "Cancelled: another deployment answered first, or the client left.",
      }),
      ms: out.count.nullable(),
      cooling_until: out.moment.nullable(),
    }),
  )
  .meta({ id: "PathOfCall" });

type Step = z.output<typeof pathOfCall>[number];
type Deployment = Step["deployment"];

interface Metadata {
  readonly attempts?: readonly Attempt[];
  readonly passed_over?: readonly string[];
}

const NOTHING = {
  as: null,
  deployment: null,
  status: null,
  error: null,
  outrun: false,
  ms: null,
  cooling_until: null,
} as const;

/** The path of a row of the ledger; errors in it are as the caller may see them. */
export async function pathOf(admin: Admin, row: Row): Promise<readonly Step[]> {
  const { attempts = [], passed_over: passedOver = [] } = row[
    "metadata"
  ] as Metadata;
  const answeredBy = textOrNull(row["model_id"]);
  const deployments = await deploymentsOf(admin, [
    ...passedOver,
    ...attempts.map(({ model_id: id }) => id),
    ...(answeredBy === null ? [] : [answeredBy]),
  ]);
  const called = textOrNull(row["model_group"]);
  const tried = attempts.map((attempt, at): Step => ({
    ...NOTHING,
    kind: "attempt",
    as: roleOf(deployments, attempts, at, called),
    deployment: deployments(attempt.model_id),
    status: attempt.status,
    error: attempt.error,
    outrun: attempt.status === CANCELLED,
    ms: attempt.ms ?? null,
    cooling_until:
      attempt.cooling_until === undefined
        ? null
        : new Date(attempt.cooling_until).toISOString(),
  }));
  return [
    ...passedOver.map((id): Step => ({
      ...NOTHING,
      kind: "passed_over",
      deployment: deployments(id),
    })),
    ...tried,
    ...endOf(row, deployments, attempts, called),
  ];
}

/** How the call ended; a call whose last attempt failed ended with that attempt. */
function endOf(
  row: Row,
  deployments: (id: string) => Deployment,
  attempts: readonly Attempt[],
  called: string | null,
): readonly Step[] {
  if (row["payer"] !== null) {
    return [];
  }
  if (row["cache_hit"] === "True") {
    return [{ ...NOTHING, kind: "cache" }];
  }
  const id = textOrNull(row["model_id"]);
  const isAnswered = row["status"] === "success";
  if (!isAnswered && attempts.at(-1)?.model_id === id) {
    return [];
  }
  const all = [...attempts, ...(id === null ? [] : [{ model_id: id }])];
  return [
    {
      ...NOTHING,
      kind: isAnswered ? "answer" : "end",
      as: id === null ? null : roleOf(deployments, all, all.length - 1, called),
      deployment: id === null ? null : deployments(id),
    },
  ];
}

function roleOf(
  deployments: (id: string) => Deployment,
  attempts: readonly Pick<Attempt, "model_id">[],
  at: number,
  called: string | null,
): Step["as"] {
  const aliasOf = (index: number) =>
    deployments(attempts[index]?.model_id ?? "")?.model_group ?? null;
  const before = at === 0 ? called : aliasOf(at - 1);
  const alias = aliasOf(at);
  if (
    alias !== null &&
    before !== null &&
    alias !== before &&
    !isWildcard(alias)
  ) {
    return "fallback";
  }
  return at === 0 ? "first" : "retry";
}

/** The alias of a deployment such as `openai/*`, which is called by other names. */
function isWildcard(alias: string): boolean {
  return alias.includes("*");
}

async function deploymentsOf(
  admin: Pick<Admin, "pool" | "reachesAll">,
  ids: readonly string[],
): Promise<(id: string) => Deployment> {
  const rows = await query<Exclude<Deployment, null>>(
    admin.pool,
    `SELECT model_id, model_name AS model_group, provider, model, ${admin.reachesAll ? "api_base" : "NULL AS api_base"}
       FROM deployments WHERE model_id = ANY($1)`,
    [[...new Set(ids)]],
  );
  const known = new Map(rows.map((row) => [row.model_id, row]));
  return (id) =>
    known.get(id) ?? {
      model_id: id,
      model_group: null,
      provider: null,
      model: null,
      api_base: null,
    };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
