import { isPrivateHost } from "../../core/network-addresses.ts";
import type { Deployment } from "../config/types.ts";

type Place = Pick<Deployment, "provider" | "apiBase" | "local">;

/** Whether a deployment is known to be a runner: it says so, or it is Ollama. */
export function isKnownRunner({ provider, local }: Place): boolean {
  return local ?? provider === "ollama";
}

/**
 * Whether a deployment may be a runner: its address is loopback, private, or a name of the local network. A proxy that
 * forwards calls to a cloud has such an address too.
 */
export function isLocalRunner(deployment: Place): boolean {
  const { apiBase, local } = deployment;
  return (
    isKnownRunner(deployment) ||
    (local === null &&
      apiBase !== "" &&
      isPrivateHost(new URL(apiBase).hostname))
  );
}
