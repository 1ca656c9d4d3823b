import { z } from "zod";
import { InstanceRunning, InstanceUnknown } from "../limits/instances.ts";
import { RedisAway } from "../limits/redis-link.ts";
import { dollarsFromNanos } from "../pricing/money.ts";
import { CallError } from "../http/errors.ts";
import { auditDone } from "./audit.ts";
import { name } from "./fields.ts";
import { adminRoute, type AdminRoute } from "./route.ts";

/** GET /instances: the gateways that share the limits in Redis, with spend of theirs that is not in the ledger. */
const list = adminRoute("GET /instances", z.object({}), async ({ gateway }) => {
  const instances = await orCallError(gateway.limits.instances());
  const shown = instances.map((one) => ({
    instance: one.instance,
    this_one: one.instance === gateway.journal.instance,
    running: one.running,
    silent_seconds:
      one.silentMs === null ? null : Math.round(one.silentMs / 1_000),
    pending_budgets: one.budgets,
    pending_spend: dollarsFromNanos(one.pending),
  }));
  return { instances: shown };
});

/** POST /instances/forget: drops the pending spend of an instance whose journal is lost. */
const forget = adminRoute(
  "POST /instances/forget",
  z.object({ instance: name }),
  async (admin, { instance }) => {
    await orCallError(admin.gateway.limits.forgetInstance(instance));
    await auditDone(admin, "deleted", "instance", instance, {});
    return { forgotten: instance };
  },
);

async function orCallError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof InstanceUnknown) {
      throw new CallError("unknown_object", error.message);
    }
    if (error instanceof InstanceRunning) {
      throw new CallError("invalid_request", error.message);
    }
    if (error instanceof RedisAway) {
      throw new CallError(
        "limits_unavailable",
        "Redis is unavailable. Try again when it is back.",
      );
    }
    throw error;
  }
}

export const INSTANCES: readonly AdminRoute[] = [list, forget];
