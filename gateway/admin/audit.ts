import {
  DatabaseUnavailable,
  query,
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
  | "flushed"
  | "viewed";

/** An action of an actor on an object. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly objectType: string;
  readonly objectId: string;
  /** null: the object is new. */
  readonly before: Row | null;
  /** null: the object is gone. */
  readonly after: Row | null;
}

/** Adds an entry to the audit log, in the transaction of the change. */
export async function audit(
  client: Client | Pool,
  actor: string,
  { action, objectType, objectId, before, after }: AuditEntry,
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

/** Adds entries about prompts that were shown, in one statement. */
export async function auditPromptViews(
  client: Client | Pool,
  actor: string,
  requestIds: readonly string[],
): Promise<void> {
  if (requestIds.length > 0) {
    await query(
      client,
      `INSERT INTO audit_log (actor, action, object_type, object_id)
         SELECT $1, 'viewed', 'prompt', id FROM unnest($2::text[]) AS id`,
      [actor, requestIds],
    );
  }
}

/** Adds an entry about a change outside the database. The change is already done, so it is logged while the database is unavailable. */
export async function auditDone(
  { actor: { name }, pool, gateway }: Admin,
  done: Omit<AuditEntry, "before">,
): Promise<void> {
  try {
    await audit(pool, name, { ...done, before: null });
  } catch (error) {
    if (!(error instanceof DatabaseUnavailable)) {
      throw error;
    }
    gateway.log.warn(
      { actor: name, ...done },
      "database unavailable: this change is not in the audit log",
    );
  }
}
