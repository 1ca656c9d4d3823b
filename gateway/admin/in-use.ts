import { query, type Client } from "../database/pool.ts";
import { CallError } from "../http/errors.ts";
import { BUDGET } from "./kinds/budget.ts";
import { END_USER } from "./kinds/customer.ts";
import { KEY } from "./kinds/key.ts";
import type { Kind } from "./kinds/kind.ts";
import { MEMBER } from "./kinds/member.ts";
import { ORGANIZATION } from "./kinds/organization.ts";
import { TAG } from "./kinds/tag.ts";
import { TEAM } from "./kinds/team.ts";
import { USER } from "./kinds/user.ts";
import { counted } from "../../core/words.ts";

/** The kinds that refer to a kind, by the column of its id. */
const REFERRING = new Map<Kind, readonly Kind[]>([
  [BUDGET, [KEY, USER, TEAM, MEMBER, ORGANIZATION, END_USER, TAG]],
  [ORGANIZATION, [KEY, TEAM]],
]);

/** Throws 400 while other rows refer to the one to be deleted: they would silently lose its limits. Runs in the caller's transaction. */
export async function rejectWhileUsed(
  client: Client,
  of: Kind,
  id: string,
): Promise<void> {
  const [column = ""] = of.id;
  // The lock makes concurrent references wait; they fail once the row is deleted.
  await query(
    client,
    `SELECT FROM ${of.table} WHERE ${column} = $1 FOR UPDATE`,
    [id],
  );
  const users: string[] = [];
  for (const { table, noun } of REFERRING.get(of) ?? []) {
    const [found] = await query<{ count: number }>(
      client,
      `SELECT count(*) AS count FROM ${table} WHERE ${column} = $1`,
      [id],
    );
    const count = found?.count ?? 0;
    if (count > 0) {
      users.push(counted(count, noun));
    }
  }
  if (users.length > 0) {
    throw new CallError(
      "invalid_request",
      `The ${of.noun} ${id} is in use by ${users.join(", ")}: change or reset their \`${column}\` first.`,
      { param: column },
    );
  }
}
