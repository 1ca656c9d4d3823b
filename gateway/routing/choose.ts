import type { ModelGroup, PricedDeployment } from "./catalog.ts";

/**
 * The deployment of an alias that a call goes to next: by weight, at random, among those not tried yet.
 * When all were tried, the one that was tried longest ago.
 */
export function chooseDeployment(
  group: ModelGroup,
  tried: readonly PricedDeployment[] = [],
  random: () => number = Math.random,
): PricedDeployment {
  const fresh = group.deployments.filter(
    (deployment) => !tried.includes(deployment),
  );
  const candidates = fresh.length > 0 ? fresh : group.deployments;
  const [first] = fresh.length > 0 ? fresh : tried;
  if (first === undefined)
    throw new Error(`the alias ${group.alias} has no deployment`);
  if (candidates.length === 1 || fresh.length === 0) return first;
  const sum = candidates.reduce(
    (weights, deployment) => weights + deployment.weight,
    0,
  );
  let point = random() * sum;
  for (const deployment of candidates) {
    point -= deployment.weight;
    if (point < 0) return deployment;
  }
  return first;
}
