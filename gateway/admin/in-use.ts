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

/** Who can point to a kind, by the column of its id. */
const POINTING = new Map<Kind, readonly Kind[]>([
  [BUDGET, [KEY, USER, TEAM, MEMBER, ORGANIZATION, END_USER, TAG]],
  [ORGANIZATION, [KEY, TEAM]],
]);

/** Throws 400 while others point to what is to be deleted, in the caller's transaction: its limits would be gone from them unseen. */
export async function refuseWhileUsed(
  client: Client,
  of: Kind,
  id: string,
): Promise<void> {
  const [column = ""] = of.id;
  // Whoever would point to it meanwhile waits, and is refused when it is gone.
  await query(
    client,
    `SELECT FROM ${of.table} WHERE ${column} = $1 FOR UPDATE`,
    [id],
  );
  const users: string[] = [];
  for (const { table, noun } of POINTING.get(of) ?? []) {
    const [found] = await query<{ count: number }>(
      client,
      `SELECT count(*) AS count FROM ${table} WHERE ${column} = $1`,
      [id],
    );
    const count = found?.count ?? 0;
    if (count > 0) {
      users.push(`${count} ${noun}${count === 1 ? "" : "s"}`);
    }
  }
  if (users.length > 0) {
    throw new CallError(
      "invalid_request",
      `The ${of.noun} ${id} is in use by ${users.join(", ")}: give them another \`${column}\`, or none, before you delete it.`,
      { param: column },
    );
  }
}
