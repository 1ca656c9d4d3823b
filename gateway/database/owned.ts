import { query, type Pool } from "./pool.ts";

/** Tables whose rows belong to an owner, with the column that names them. */
const NAMED_BY = {
  responses: "response_id",
  conversations: "conversation_id",
} as const;

/** Deletes a row of an owner with all that belongs to it; false: there is none. */
export async function deleteOwned(
  pool: Pool,
  table: keyof typeof NAMED_BY,
  owner: string,
  id: string,
): Promise<boolean> {
  const gone = await query(
    pool,
    `DELETE FROM ${table} WHERE ${NAMED_BY[table]} = $1 AND owner = $2 RETURNING 1`,
    [id, owner],
  );
  return gone.length > 0;
}
