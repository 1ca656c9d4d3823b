import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { unknownModel } from "../../access/models.ts";
import { validateBody } from "../../calls/validate.ts";
import type { LimitsMode } from "../../limits/limits.ts";
import type { Gateway } from "../../gateway.ts";

/** GET /health/liveliness: the process answers; nothing is asked of anyone else. */
export function liveliness(): string {
  return '"I\'m alive!"';
}

interface Readiness {
  readonly status: "connected" | "stopping" | "starting";
  readonly db: "connected" | "Not connected";
  readonly cache: "redis" | "memory" | null;
  /** `redis_away`: limits are kept in process, at this instance's share. */
  readonly limits: LimitsMode;
  readonly version: string;
  readonly journal: { readonly pending: number };
}

/** GET /health/readiness: 503 only when calls cannot be served. */
export function readiness(gateway: Gateway, reply: FastifyReply): Readiness {
  const { database, journal, cache, config, version } = gateway;
  const servable =
    database.ready() && !gateway.stopping() && !journal.state().full;
  reply.code(servable ? 200 : 503);
  return {
    status: gateway.stopping()
      ? "stopping"
      : database.ready()
        ? "connected"
        : "starting",
    db: database.connected() ? "connected" : "Not connected",
    cache: config.cache.enabled ? cache.kind : null,
    limits: gateway.limits.mode(),
    version,
    journal: { pending: journal.state().pendingRecords },
  };
}

export const healthQuery = z.object({
  model: z.string().optional(),
  deep: z
    .enum(["true", "false"], "write true or false")
    .default("false")
    .transform((deep) => deep === "true"),
  /** Seconds. */
  recent: z.coerce
    .number("write a number of seconds")
    .int("write whole seconds")
    .min(1, "write at least 1")
    .max(86_400, "write at most 86400, a day")
    .optional(),
});

/** GET /health (admin): every deployment, asked for what it has. */
export async function health(gateway: Gateway, request: FastifyRequest) {
  authorizeRoute(callerOf(request), "GET /health");
  const { model, deep, recent } = validateBody(healthQuery, request.query);
  const how = { deep, recentMs: recent === undefined ? null : recent * 1_000 };
  if (model === undefined) {
    return gateway.modelHealth.check(null, how);
  }
  const group = gateway.catalog.find(model);
  if (group === null) {
    throw unknownModel(model);
  }
  return gateway.modelHealth.check(group.configured, how);
}
