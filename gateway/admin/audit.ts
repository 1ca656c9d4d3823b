import type { FastifyRequest } from "fastify";
import type { Caller } from "../access/callers.ts";
import type { Client } from "../db/pool.ts";
import { insertRow, type Row } from "../db/rows.ts";

/** Who changes something, for the audit log. The holder of the master key may name the person who acts. */
export function actorOf(caller: Caller, request: FastifyRequest): string {
  if (caller.kind === "key") return caller.userId ?? `key:${caller.token}`;
  const named =
    request.headers["x-hearth-changed-by"] ??
    request.headers["litellm-changed-by"];
  return typeof named === "string" && named !== "" ? named : caller.userId;
}

/** One line of the audit log, in the transaction of the change that it tells of. */
export async function audit(
  client: Client,
  actor: string,
  action: "created" | "updated" | "deleted" | "blocked" | "unblocked",
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
