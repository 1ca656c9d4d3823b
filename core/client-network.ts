import { isIPv6 } from "node:net";

/** Of the eight groups of an IPv6 address: a client chooses the others, as providers assign it at least all addresses of a /64. */
const NETWORK_GROUPS = 4;
const MAPPED_IPV4 = /^::ffff:([\da-f]+):([\da-f]+)$/;

/** What counts as one client where attempts are limited: an IPv4 address, or the /64 of an IPv6 address. Other text is returned as it is. */
export function clientNetwork(address: string): string {
  const [withoutZone = ""] = address.split("%");
  if (!isIPv6(withoutZone)) {
    return address;
  }
  // In its shortest form, in hexadecimal.
  const short = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED_IPV4.exec(short) ?? [];
  return high === undefined || low === undefined
    ? `${groupsOf(short).slice(0, NETWORK_GROUPS).join(":")}::/64`
    : [high, low].flatMap(bytesOf).join(".");
}

function groupsOf(short: string): readonly string[] {
  const [head = [], tail = []] = short
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from(
    { length: 8 - head.length - tail.length },
    () => "0",
  );
  return [...head, ...zeros, ...tail];
}

function bytesOf(group: string): readonly number[] {
  const value = Number.parseInt(group, 16);
  return [value >> 8, value & 0xff];
}
