import { z } from "zod";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { InstanceRunning, InstanceUnknown } from "../limits/instances.ts";
import { RedisAway } from "../limits/redis-session.ts";
import { dollarsFromNanos } from "../pricing/money.ts";
import { adminRoute } from "./admin-route.ts";
import { auditDone } from "./audit.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";

/** GET /instances: the gateways that share limits in Redis, with their spend that is not yet in the ledger. */
const list = adminRoute(
  "GET /instances",
  {
    summary:
      "List the gateways that share limits in Redis, with their spend that is not yet in the ledger.",
    input: z.object({}),
    answer: z.object({
      instances: z.array(
        z.object({
          instance: out.text,
          this_one: z.boolean(),
          running: z.boolean(),
          silent_seconds: out.count.nullable(),
          undrained_calls: out.count,
          pending_budgets: out.count,
          pending_spend: out.dollars,
        }),
      ),
    }),
  },
  async ({ gateway }) => {
    const instances = await orCallError(gateway.limits.instances());
    const shown = instances.map((one) => ({
      instance: one.instance,
      this_one: one.instance === gateway.journal.instance,
      running: one.running,
      silent_seconds:
        one.silentMs === null ? null : Math.round(one.silentMs / 1_000),
      undrained_calls: one.undrained,
      pending_budgets: one.budgets,
      pending_spend: dollarsFromNanos(one.pending),
    }));
    return { instances: shown };
  },
);

/** POST /instances/forget: removes an instance whose journal is lost, and its pending spend. */
const forget = adminRoute(
  "POST /instances/forget",
  {
    summary: "Remove an instance whose journal is lost, and its pending spend.",
    input: z.object({ instance: name }),
    answer: z.object({ forgotten: out.text }),
  },
  async (admin, { instance }) => {
    await orCallError(admin.gateway.limits.forgetInstance(instance));
    await auditDone(admin, {
      action: "deleted",
      objectType: "instance",
      objectId: instance,
      after: {},
    });
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

export const INSTANCES: readonly Route[] = [list, forget];
