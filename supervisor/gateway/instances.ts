import { z } from "zod";
import { counted, money } from "../../core/words.ts";
import type { AdminApi } from "./admin-api.ts";

const answer = z.object({
  instances: z.array(
    z.looseObject({
      instance: z.string(),
      this_one: z.boolean(),
      running: z.boolean(),
      /** null: unknown. */
      silent_seconds: z.number().nullable(),
      /** Missing in the answers of earlier gateways. */
      undrained_calls: z.number().default(0),
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

/** Not running, with calls that are not in the ledger yet. */
export function isUndrained(instance: GatewayInstance): boolean {
  const { running, undrained_calls: calls, pending_budgets: held } = instance;
  return !running && (calls > 0 || held > 0);
}

/** What a stopped instance has in its journal alone, as the end of a sentence. */
export function describeUndrained(instance: GatewayInstance): string {
  const { undrained_calls: calls, pending_spend: spend } = instance;
  const parts = [
    ...(calls > 0 ? [counted(calls, "call")] : []),
    ...(spend > 0 ? [`up to ${money(spend)} of spend`] : []),
  ];
  return `is stopped with ${parts.join(" and ")} only in its journal`;
}
