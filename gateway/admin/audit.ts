import {
  DatabaseUnavailable,
  type Client,
  type Pool,
} from "../database/pool.ts";
import { insertRow, type Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";

export type AuditAction =
  | "created"
  | "updated"
  | "deleted"
  | "blocked"
  | "unblocked"
  | "rotated"
  | "spend_set"
  | "reloaded"
  | "flushed";

/** One line of the audit log, in the transaction of the change that it tells of. */
export async function audit(
  client: Client | Pool,
  actor: string,
  action: AuditAction,
  objectType: string,
  objectId: string,
  before: Row | null,
  after: Row | null,
): Promise<void> {
  await insertRow(client, "audit_log", {
    actor,
    action,
    object_type: objectType,
    object_id: objectId,
    before,
    after,
  });
}

/** One line about what was done outside the database. It is done either way, so while the database is away the log tells of it. */
export async function auditDone(
  { actor: { name }, pool, gateway }: Admin,
  action: AuditAction,
  objectType: string,
  objectId: string,
  after: Row,
): Promise<void> {
  try {
    await audit(pool, name, action, objectType, objectId, null, after);
  } catch (error) {
    if (!(error instanceof DatabaseUnavailable)) {
      throw error;
    }
    gateway.log.warn(
      { actor: name, action, objectType, objectId, after },
      "the database is away: this is not in the audit log",
    );
  }
}
