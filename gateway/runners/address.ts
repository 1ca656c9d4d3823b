import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import { wireOf } from "../providers/families.ts";
import { withOwnHeaders } from "../providers/provider-call.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

const roots = new WeakMap<PricedDeployment, string>();
const accesses = new WeakMap<PricedDeployment, string>();

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

/** The headers of requests to a deployment's server outside calls, with its key. */
export function headersOf(
  deployment: PricedDeployment,
): Readonly<Record<string, string>> {
  return withOwnHeaders(
    deployment,
    wireOf(deployment.provider).headers(deployment, {}),
  );
}

/** Equal for deployments that get the same answers from the same server: those of another key may be denied. Secret. */
export function accessOf(deployment: PricedDeployment): string {
  const known = accesses.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const access = JSON.stringify([
    rootOf(deployment),
    deployment.publicOnly,
    headersOf(deployment),
  ]);
  accesses.set(deployment, access);
  return access;
}

/** The name of the server whose slots the calls of a deployment share. What a team's admin adds does not change those of others. */
export function slotServerOf(deployment: PricedDeployment): string {
  const root = rootOf(deployment);
  return deployment.publicOnly ? `${root}\0${deployment.teamId ?? ""}` : root;
}
