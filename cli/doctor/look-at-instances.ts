import { findGateway } from "../gateway-client.ts";
import type { Environment } from "../../core/environment.ts";
import {
  holdsBudgets,
  listInstances,
} from "../../supervisor/gateway/instances.ts";
import { money } from "../../core/words.ts";
import { hint, type Finding } from "../../core/finding.ts";

/** Gateways that do not run and whose spend counts in budgets without being in the ledger. */
export async function lookAtInstances(
  env: Environment,
): Promise<readonly Finding[]> {
  try {
    const stopped = (await listInstances(findGateway(undefined, env))).filter(
      holdsBudgets,
    );
    return stopped.map(({ instance, pending_spend: spend }) =>
      hint(
        "budgets",
        `gateway instance ${instance} is stopped, and up to ${money(spend)} of its spend is in its journal only`,
        `start it again; if its journal is lost: hearth instances forget ${instance}`,
      ),
    );
  } catch {
    // No gateway runs here, or it cannot say: the findings about services tell why.
    return [];
  }
}
