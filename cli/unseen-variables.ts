import type { Environment } from "../core/environment.ts";
import { howToSupply } from "../core/installation.ts";
import { listDeployments } from "../supervisor/gateway/deployments.ts";
import { findGateway } from "./gateway-client.ts";

/** A variable of this shell that the running gateway does not have, although models need it. */
export interface UnseenVariable {
  readonly name: string;
  readonly models: readonly string[];
}

/** None if no gateway is running here or responds. */
export async function findUnseenVariables(
  env: Environment,
): Promise<readonly UnseenVariable[]> {
  const deployments = await Promise.resolve()
    .then(() => listDeployments(findGateway(undefined, env)))
    .catch(() => []);
  const waiting = deployments.flatMap(({ model_name, model_info }) => {
    const name = model_info.waits_for;
    return name !== null && isSet(name, env) ? [{ name, model_name }] : [];
  });
  return [...Map.groupBy(waiting, ({ name }) => name)].map(([name, all]) => ({
    name,
    models: [...new Set(all.map(({ model_name }) => model_name))],
  }));
}

function isSet(name: string, env: Environment): boolean {
  return [name, `${name}_FILE`].some((each) => (env[each] ?? "") !== "");
}

/** What is wrong. */
export function describeUnseen({ name, models }: UnseenVariable): string {
  return `${name} is set in this shell, but not in the running Hearth, which keeps the variables it was started with; ${models.join(", ")} ${models.length === 1 ? "is" : "are"} still pending`;
}

/** What to do. */
export function fixOfUnseen({ name }: UnseenVariable): string {
  return howToSupply(name, "embedded");
}
