import { isIP, BlockList } from "node:net";
import type { Deployment } from "../config/types.ts";

const PRIVATE = new BlockList();
PRIVATE.addSubnet("127.0.0.0", 8, "ipv4");
PRIVATE.addSubnet("10.0.0.0", 8, "ipv4");
PRIVATE.addSubnet("172.16.0.0", 12, "ipv4");
PRIVATE.addSubnet("192.168.0.0", 16, "ipv4");
PRIVATE.addSubnet("169.254.0.0", 16, "ipv4");
// Carrier-grade NAT, which Tailscale uses for its own network.
PRIVATE.addSubnet("100.64.0.0", 10, "ipv4");
PRIVATE.addAddress("::1", "ipv6");
PRIVATE.addSubnet("fc00::", 7, "ipv6");
PRIVATE.addSubnet("fe80::", 10, "ipv6");

const PRIVATE_NAME = /(^|\.)(localhost|local|lan|home|internal|home\.arpa)$/;

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

/** Whether a host is loopback, private, or a name that only the local network knows. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  switch (isIP(host)) {
    case 4:
      return PRIVATE.check(host, "ipv4");
    case 6:
      return PRIVATE.check(host, "ipv6");
    default:
      // A name without a dot can only be found on the local network.
      return !host.includes(".") || PRIVATE_NAME.test(host);
  }
}
