import { findGateway } from "../gateway-client.ts";
import type { Environment } from "../../core/environment.ts";
import {
  holdsBudgets,
  listInstances,
} from "../../supervisor/gateway/instances.ts";
import { money } from "../../core/words.ts";
import { hint, type Finding } from "../../core/finding.ts";

/** Stopped gateways with spend that counts in budgets but is not in the ledger. */
export async function probeInstances(
  env: Environment,
): Promise<readonly Finding[]> {
  try {
    const stopped = (await listInstances(findGateway(undefined, env))).filter(
      holdsBudgets,
    );
    return stopped.map(({ instance, pending_spend: spend }) =>
      hint(
        "budgets",
        `gateway instance ${instance} is stopped with up to ${money(spend)} of spend only in its journal`,
        `start it again; if its journal is lost: hearth instances forget ${instance}`,
      ),
    );
  } catch {
    // No gateway is running here, or it does not respond: reported by the findings about services.
    return [];
  }
}
