import { BlockList, isIP } from "node:net";

/** IPv4 networks that other networks do not reach: loopback, LAN, VPN (Tailscale uses that of carrier-grade NAT), link-local. */
const PRIVATE_NETWORKS = [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
] as const;

/** The same of IPv6. */
const PRIVATE_IPV6_NETWORKS = [
  ["::1", 128],
  ["fc00::", 7],
  ["fe80::", 10],
] as const;

/** Further networks of IPv4 that are not public: https://www.iana.org/assignments/iana-ipv4-special-registry */
const SPECIAL_NETWORKS = [
  ["0.0.0.0", 8],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

/** The same within 2000::/3, the only public network of IPv6; Teredo and 6to4 carry addresses of IPv4. */
const SPECIAL_IPV6_NETWORKS = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

/** Where DNS64 shows addresses of IPv4 to hosts that have only IPv6: RFC 6052. */
const NAT64 = "64:ff9b::";
const NAT64_BITS = 96;

const PRIVATE = new BlockList();
const NOT_PUBLIC = new BlockList();
const PUBLIC_IPV6 = new BlockList();
for (const [network, bits] of PRIVATE_NETWORKS) {
  PRIVATE.addSubnet(network, bits, "ipv4");
}
for (const [network, bits] of PRIVATE_IPV6_NETWORKS) {
  PRIVATE.addSubnet(network, bits, "ipv6");
}
for (const [network, bits] of [...PRIVATE_NETWORKS, ...SPECIAL_NETWORKS]) {
  NOT_PUBLIC.addSubnet(network, bits, "ipv4");
  NOT_PUBLIC.addSubnet(NAT64 + network, NAT64_BITS + bits, "ipv6");
}
for (const [network, bits] of SPECIAL_IPV6_NETWORKS) {
  NOT_PUBLIC.addSubnet(network, bits, "ipv6");
}
PUBLIC_IPV6.addSubnet("2000::", 3, "ipv6");
PUBLIC_IPV6.addSubnet(NAT64, NAT64_BITS, "ipv6");
// An address of IPv4 written as one of IPv6.
PUBLIC_IPV6.addSubnet("::ffff:0:0", NAT64_BITS, "ipv6");

/** A name without a dot can only be found on the local network. */
const PRIVATE_NAME =
  /^[^.]*$|(^|\.)(localhost|local|lan|home|internal|home\.arpa)$/;

/** Whether an IP address is of this machine, a LAN, a VPN or a link. */
export function isPrivateAddress(address: string): boolean {
  return isIn(PRIVATE, address);
}

/** Whether an IP address is reached over the internet: neither of this machine, nor of a private network, nor of a cloud's metadata. */
export function isPublicAddress(address: string): boolean {
  return (
    !isIn(NOT_PUBLIC, address) &&
    (isIP(address) === 4 || isIn(PUBLIC_IPV6, address))
  );
}

/** Whether a host, as in a URL, is loopback, private, or a name that only the local network knows. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  return isIP(host) === 0 ? PRIVATE_NAME.test(host) : isPrivateAddress(host);
}

function isIn(networks: BlockList, address: string): boolean {
  // The zone of a link-local address.
  const [withoutZone = ""] = address.split("%");
  return networks.check(withoutZone, isIP(withoutZone) === 6 ? "ipv6" : "ipv4");
}
