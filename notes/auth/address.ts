import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";

/** Proxies whose word about the caller's address counts: addresses and ranges such as `10.0.0.0/8`. Throws one sentence. */
export function readProxies(text: string): BlockList {
  const proxies = new BlockList();
  for (const entry of text.split(",").map((each) => each.trim())) {
    if (entry === "") {
      continue;
    }
    const [address = "", prefix] = entry.split("/");
    const kind = isIPv6(address) ? "ipv6" : "ipv4";
    const longest = kind === "ipv6" ? 128 : 32;
    const bits = prefix === undefined ? longest : Number(prefix);
    if (
      isIP(address) === 0 ||
      !Number.isInteger(bits) ||
      bits < 0 ||
      bits > longest
    ) {
      throw new Error(
        `[hearth] trusted_proxies holds "${entry}", which is no address and no range such as 10.0.0.0/8`,
      );
    }
    proxies.addSubnet(address, bits, kind);
  }
  return proxies;
}

/** Where a request comes from: the other end of the connection, or what a trusted proxy there says. Of several addresses the last one, as CouchDB has it: the proxy added it. */
export function addressOf(
  request: IncomingMessage,
  proxies: BlockList,
): string {
  const connected = plainAddress(request.socket.remoteAddress ?? "unknown");
  if (!isIn(connected, proxies)) {
    return connected;
  }
  const last = String(request.headers["x-forwarded-for"] ?? "")
    .split(",")
    .at(-1);
  return last?.trim() || connected;
}

function isIn(address: string, proxies: BlockList): boolean {
  return (
    isIP(address) !== 0 &&
    proxies.check(address, isIPv6(address) ? "ipv6" : "ipv4")
  );
}

/** An IPv4 address as such, also on a socket of both kinds. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
