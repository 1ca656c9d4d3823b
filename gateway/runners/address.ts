import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

const roots = new WeakMap<PricedDeployment, string>();

/** The address of a deployment's server, to which the paths of its own API are appended. */
export function rootOf(deployment: PricedDeployment): string {
  const known = roots.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const root = withoutTrailingSlashes(deployment.apiBase).replace(/\/v1$/, "");
  roots.set(deployment, root);
  return root;
}
