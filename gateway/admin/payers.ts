import { present } from "../../core/json.ts";
import { MASTER_USER } from "../access/callers.ts";
import { clearSpend } from "../database/adjustments.ts";
import {
  beforeCommit,
  query,
  transaction,
  type Client,
  type Pool,
} from "../database/pool.ts";
import {
  deleteRows,
  findRows,
  insertRow,
  updateRows,
  type Row,
} from "../database/rows.ts";
import { spentEntities, withSpend } from "../database/spend.ts";
import { lockLedger, seedCurrentWindows } from "../database/totals.ts";
import { CallError } from "../http/errors.ts";
import { requireAccessGroups } from "./access-group-ids.ts";
import type { Admin } from "./admin-route.ts";
import { audit, type AuditAction } from "./audit.ts";
import { withBudgetTable, withReset } from "./budget-tables.ts";
import { budgetsInForce } from "./budgets-in-force.ts";
import { BUDGET } from "./kinds/budget.ts";
import { END_USER } from "./kinds/customer.ts";
import { KEY } from "./kinds/key.ts";
import { entityOf, idOf, nameOf, type Kind } from "./kinds/kind.ts";
import { MEMBER } from "./kinds/member.ts";
import { ORGANIZATION } from "./kinds/organization.ts";
import { TAG } from "./kinds/tag.ts";
import { TEAM } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { withMembers, withTeams } from "./memberships.ts";

/** The row of an id; throws 404 that names the field. */
export async function findOne(
  from: Pool | Client,
  of: Kind,
  id: Row,
): Promise<Row> {
  const [row] = await findRows(from, of.table, id);
  if (row === undefined) {
    throw unknown(of, nameOf(of, id));
  }
  return row;
}

export function unknown(
  { noun, createdBy, field }: Kind,
  id: string,
): CallError {
  return new CallError(
    "unknown_object",
    `The ${noun} ${id} does not exist. Create it with ${createdBy}.`,
    { param: field },
  );
}

/** Rows as every route shows them: with spend, the next reset of the budget, and teams, members or a table of limits. */
export async function answerRows(
  admin: Admin,
  of: Kind,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  if (of === BUDGET) {
    return withReset(admin, rows);
  }
  if (of.entity === null) {
    return rows;
  }
  const withSpends = await withSpend(
    admin.pool,
    rows,
    (row) => entityOf(of, row),
    admin.windowing,
    admin.now,
  );
  switch (of) {
    case TEAM:
      return withMembers(admin.pool, withSpends);
    case USER:
      return withTeams(admin.pool, withSpends);
    default:
      return of.showsBudgetTable === true
        ? withBudgetTable(admin.pool, of, withSpends)
        : withSpends;
  }
}

/** The same with the budget in force. */
export async function answerBudgetedRows(
  admin: Admin,
  of: Kind,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const [answers, budgets] = await Promise.all([
    answerRows(admin, of, rows),
    budgetsInForce(admin, of, rows),
  ]);
  return answers.map((row, at) => ({
    ...row,
    budget_in_force: budgets[at] ?? null,
  }));
}

export async function answerRow(
  admin: Admin,
  of: Kind,
  row: Row,
): Promise<Row> {
  const [one] = await answerRows(admin, of, [row]);
  return one ?? row;
}

/** Who changes rows, and by which time. */
export interface Writer extends Pick<Admin, "windowing" | "now"> {
  readonly actor: Pick<Admin["actor"], "name">;
}

/** Creates a row, in the caller's transaction; null if `ifNew` and it exists. */
export async function create(
  admin: Writer,
  client: Client,
  of: Kind,
  fields: Row,
  ifNew = false,
): Promise<Row | null> {
  const { name } = admin.actor;
  await requireAccessGroups(client, fields);
  const row = await insertRow(
    client,
    of.table,
    // A column keeps its default where a new row's field is null.
    { ...present(fields), created_by: name, updated_by: name },
    ifNew ? "ON CONFLICT DO NOTHING" : "",
  );
  if (row === null) {
    return null;
  }
  await audit(client, name, {
    action: "created",
    objectType: of.noun,
    objectId: nameOf(of, row),
    before: null,
    after: row,
  });
  seedIfWindowsMayChange(admin, client, of, row, fields);
  startWithoutSpend(admin, client, of, row);
  return row;
}

/** Changes a row, in the caller's transaction; throws 404. null resets a field to its default. */
export async function change(
  admin: Writer,
  client: Client,
  of: Kind,
  id: Row,
  changes: Row,
  action: AuditAction = "updated",
): Promise<Row> {
  // Before the row is locked, as in a deletion of the group.
  await requireAccessGroups(client, changes);
  const [before] = await findRows(client, of.table, id, "FOR UPDATE");
  if (before === undefined) {
    throw unknown(of, nameOf(of, id));
  }
  const { name } = admin.actor;
  const [after] = await updateRows(client, of.table, idOf(of, before), {
    ...changes,
    updated_by: name,
  });
  await audit(client, name, {
    action,
    objectType: of.noun,
    objectId: nameOf(of, before),
    before,
    after: after ?? null,
  });
  seedIfWindowsMayChange(admin, client, of, after ?? before, changes);
  return after ?? before;
}

/** Deletes the rows that have these values, in the caller's transaction; returns them as they were. */
export async function remove(
  admin: Admin,
  client: Client,
  of: Kind,
  where: Row,
): Promise<readonly Row[]> {
  const deleted = await deleteRows(client, of.table, where);
  const { name } = admin.actor;
  for (const row of deleted) {
    if (of === KEY) {
      await insertRow(client, "deleted_keys", { ...row, deleted_by: name });
    }
    await audit(client, name, {
      action: "deleted",
      objectType: of.noun,
      objectId: nameOf(of, row),
      before: row,
      after: null,
    });
  }
  return deleted;
}

/** Changes a row in its own transaction; returns it as answers show it. */
export async function changeAndAnswer(
  admin: Admin,
  of: Kind,
  id: Row,
  changes: Row,
  action: AuditAction = "updated",
): Promise<Row> {
  const row = await transaction(admin.pool, (client) =>
    change(admin, client, of, id, changes, action),
  );
  return answerRow(admin, of, row);
}

/** Fields that decide which window a payer's spend is counted in. */
const WINDOW_FIELDS = [
  "budget_duration",
  "budget_id",
  "model_max_budget",
  "team_member_budget_duration",
];

function seedIfWindowsMayChange(
  admin: Writer,
  client: Client,
  of: Kind,
  row: Row,
  fields: Row,
): void {
  if (!WINDOW_FIELDS.some((field) => fields[field] !== undefined)) {
    return;
  }
  beforeCommit(client, async () => {
    // Locked before the payers of a tier are read: a payer that joins meanwhile seeds its own windows.
    await lockLedger(client);
    const entities = await budgetedEntities(client, of, row, fields);
    await seedCurrentWindows(client, entities, admin.windowing, admin.now);
  });
}

/** Kinds of payers that calls name without a row. */
const NAMED_BY_CALLS: readonly Kind[] = [END_USER, TAG];

/** One that was deleted and is created again is a new one: what the former spent is not part of its budget. */
function startWithoutSpend(
  admin: Writer,
  client: Client,
  of: Kind,
  row: Row,
): void {
  if (of.entity === null || NAMED_BY_CALLS.includes(of) || isMaster(of, row)) {
    return;
  }
  beforeCommit(client, async () => {
    const entities = await spentEntities(client, [
      entityOf(of, row),
      ...(of === KEY ? await keyEntities(client, "token", row["token"]) : []),
    ]);
    if (entities.length > 0) {
      await clearSpend(client, entities, {
        reason: { created_again_by: admin.actor.name },
        windowing: admin.windowing,
        now: admin.now,
      });
    }
  });
}

/** The master key's user pays for its calls without a row. */
function isMaster(of: Kind, row: Row): boolean {
  return of === USER && row["user_id"] === MASTER_USER;
}

/** Of a tier all payers that refer to it; of a key also the budgets of its models, of a team those of its members where they change. */
async function budgetedEntities(
  client: Client,
  of: Kind,
  row: Row,
  changed: Row,
): Promise<readonly string[]> {
  if (of === KEY) {
    return keyEntities(client, "token", row["token"]);
  }
  if (of === TEAM && changed["team_member_budget_duration"] !== undefined) {
    const team = { team_id: row["team_id"] };
    const members = await findRows(client, MEMBER.table, team);
    return [
      entityOf(TEAM, row),
      ...members.map((member) => entityOf(MEMBER, member)),
    ];
  }
  if (of !== BUDGET) {
    return of.entity === null ? [] : [entityOf(of, row)];
  }
  const id = row["budget_id"];
  const entities = [...(await keyEntities(client, "budget_id", id))];
  for (const pointing of [USER, TEAM, MEMBER, ORGANIZATION, END_USER, TAG]) {
    const rows = await findRows(client, pointing.table, { budget_id: id });
    entities.push(...rows.map((pointer) => entityOf(pointing, pointer)));
  }
  return entities;
}

/** Keys with the budgets of their models, as the ledger names them. */
export async function keyEntities(
  client: Client,
  column: "token" | "budget_id",
  value: unknown,
): Promise<readonly string[]> {
  const rows = await query<{ entities: string[] }>(
    client,
    `SELECT 'key:' || token || ARRAY(
        SELECT 'key_model:' || token || '/' || alias FROM jsonb_object_keys(
          CASE WHEN k.model_max_budget = '{}' THEN coalesce(b.model_max_budget, '{}') ELSE k.model_max_budget END) alias) AS entities
      FROM keys k LEFT JOIN budgets b USING (budget_id) WHERE k.${column} = $1`,
    [value],
  );
  return rows.flatMap((row) => row.entities);
}
