import { z } from "zod";
import type { AdminApi } from "./admin-api.ts";

const answer = z.object({
  instances: z.array(
    z.looseObject({
      instance: z.string(),
      this_one: z.boolean(),
      running: z.boolean(),
      /** null: no heartbeat within a day. */
      silent_seconds: z.number().nullable(),
      pending_budgets: z.number(),
      pending_spend: z.number(),
    }),
  ),
});

export type GatewayInstance = z.output<typeof answer>["instances"][number];

/** The gateways that share limits in Redis; none without Redis. */
export async function listInstances(
  gateway: AdminApi,
): Promise<readonly GatewayInstance[]> {
  return answer.parse(await gateway.ask("GET", "/instances")).instances;
}

/** Not running, with spend that is not in the ledger yet. */
export function holdsBudgets(instance: GatewayInstance): boolean {
  return !instance.running && instance.pending_budgets > 0;
}
