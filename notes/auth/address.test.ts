import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { addressOf, readProxies } from "./address.ts";

const from = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as unknown as IncomingMessage;

test.each([
  ["", "127.0.0.1", "203.0.113.1", "127.0.0.1"],
  ["127.0.0.1", "127.0.0.1", "203.0.113.1", "203.0.113.1"],
  ["127.0.0.1", "::ffff:127.0.0.1", "203.0.113.1", "203.0.113.1"],
  ["127.0.0.1", "127.0.0.2", "203.0.113.1", "127.0.0.2"],
  ["10.0.0.0/8, ::1", "10.9.8.7", "203.0.113.7, 203.0.113.1", "203.0.113.1"],
  ["10.0.0.0/8, ::1", "::1", "2001:db8::7", "2001:db8::7"],
  ["10.0.0.0/8", "10.9.8.7", undefined, "10.9.8.7"],
  ["fd00::/8", "fd12::1", "203.0.113.1", "203.0.113.1"],
])(
  "with %j as proxies, %s that names %s counts as %s",
  (proxies, connected, forwarded, expected) => {
    expect(addressOf(from(connected, forwarded), readProxies(proxies))).toBe(
      expected,
    );
  },
);

test.each(["nonsense", "10.0.0.0/33", "10.0.0.0/x", "10.0.0/8"])(
  "%s is rejected as a proxy",
  (text) => {
    expect(() => readProxies(text)).toThrow("must be an address or a range");
  },
);
