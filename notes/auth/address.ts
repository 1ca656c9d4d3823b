import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";

/** Reads the trusted proxies: addresses and ranges such as `10.0.0.0/8`. Throws an error of one sentence. */
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
        `[hearth] trusted_proxies: "${entry}" must be an address or a range such as 10.0.0.0/8`,
      );
    }
    proxies.addSubnet(address, bits, kind);
  }
  return proxies;
}

/** The client address of a request: the remote end of the connection, or the address that a trusted proxy there reports. Of several addresses the last one, as in CouchDB: the proxy added it. */
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

/** The plain IPv4 address, also on a dual-stack socket. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
