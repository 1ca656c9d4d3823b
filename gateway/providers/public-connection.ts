import { lookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";

/** Networks of IPv4 that are not public: https://www.iana.org/assignments/iana-ipv4-special-registry */
const INNER_NETWORKS = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

/** The same within 2000::/3, the only public network of IPv6; Teredo and 6to4 carry addresses of IPv4. */
const INNER_IPV6_NETWORKS = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

/** Where DNS64 shows addresses of IPv4 to hosts that have only IPv6: RFC 6052. */
const NAT64 = "64:ff9b::";
const NAT64_BITS = 96;

const INNER = new BlockList();
const PUBLIC_IPV6 = new BlockList();
for (const [network, bits] of INNER_NETWORKS) {
  INNER.addSubnet(network, bits, "ipv4");
  INNER.addSubnet(NAT64 + network, NAT64_BITS + bits, "ipv6");
}
for (const [network, bits] of INNER_IPV6_NETWORKS) {
  INNER.addSubnet(network, bits, "ipv6");
}
PUBLIC_IPV6.addSubnet("2000::", 3, "ipv6");
PUBLIC_IPV6.addSubnet(NAT64, NAT64_BITS, "ipv6");
// An address of IPv4 written as one of IPv6.
PUBLIC_IPV6.addSubnet("::ffff:0:0", NAT64_BITS, "ipv6");

/** Whether an IP address is reached over the internet: neither of this machine, nor of a private network, nor of a cloud's metadata. */
export function isPublicAddress(address: string): boolean {
  return isIP(address) === 6
    ? PUBLIC_IPV6.check(address, "ipv6") && !INNER.check(address, "ipv6")
    : !INNER.check(address, "ipv4");
}

type Resolve = (
  hostname: string,
  options: LookupOptions,
  done: (
    error: NodeJS.ErrnoException | null,
    address: string | LookupAddress[],
    family?: number,
  ) => void,
) => void;

/**
 * Connects to public addresses only. A name is checked by the addresses that it is connected to, whatever it resolved to before;
 * one that has another address as well is rejected.
 */
export function publicConnector(
  options: buildConnector.BuildOptions,
  resolve: Resolve = lookup,
): buildConnector.connector {
  const lookupPublic: LookupFunction = (hostname, how, done) =>
    resolve(hostname, how, (error, address, family) => {
      const found = typeof address === "string" ? [{ address }] : address;
      if (
        error === null &&
        !found.every((each) => isPublicAddress(each.address))
      ) {
        done(notPublic(hostname), "", 0);
        return;
      }
      done(error, address, family);
    });
  const connect = buildConnector({ ...options, lookup: lookupPublic });
  return (place, callback) => {
    // No lookup is made for an IP address.
    const host = place.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(notPublic(host), null);
      return;
    }
    connect(place, callback);
  };
}

function notPublic(host: string): Error {
  return new Error(
    `${host} is not at a public address, and only a proxy_admin may permit others with \`model_info.public_address_only: false\``,
  );
}
