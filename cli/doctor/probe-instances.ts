import { findGateway } from "../gateway-client.ts";
import type { Environment } from "../../core/environment.ts";
import {
  describeUndrained,
  isUndrained,
  listInstances,
} from "../../supervisor/gateway/instances.ts";
import { hint, type Finding } from "../../core/finding.ts";

/** Stopped gateways with calls that are not in the ledger. */
export async function probeInstances(
  env: Environment,
): Promise<readonly Finding[]> {
  try {
    const stopped = (await listInstances(findGateway(undefined, env))).filter(
      isUndrained,
    );
    return stopped.map((one) =>
      hint(
        "budgets",
        `gateway instance ${one.instance} ${describeUndrained(one)}`,
        `start it again; if its journal is lost: hearth instances forget ${one.instance}`,
      ),
    );
  } catch {
    // No gateway is running here, or it does not respond: reported by the findings about services.
    return [];
  }
}
