import type { Client } from "../db/pool.ts";
import { insertRow, type Row } from "../db/rows.ts";

export type AuditAction =
  | "created"
  | "updated"
  | "deleted"
  | "blocked"
  | "unblocked"
  | "rotated"
  | "spend_set";

/** One line of the audit log, in the transaction of the change that it tells of. */
export async function audit(
  client: Client,
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
