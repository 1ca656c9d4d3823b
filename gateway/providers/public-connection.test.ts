import type { LookupAddress } from "node:dns";
import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isPublicAddress, publicConnector } from "./public-connection.ts";

let connections = 0;
const server = createServer((socket) => {
  connections += 1;
  socket.destroy();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(() => server.close());

test.each([
  "127.0.0.1",
  "127.9.9.9",
  "0.0.0.0",
  "10.1.2.3",
  "100.100.1.1",
  "169.254.169.254",
  "172.31.0.1",
  "192.168.1.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::127.0.0.1",
  "fe80::1",
  "fd00:ec2::254",
  "ff02::1",
  "2002:7f00:1::",
  "2001:0:1::1",
  "64:ff9b::10.0.0.1",
])("%s is not a public address", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  "1.1.1.1",
  "100.128.0.1",
  "172.32.0.1",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "::ffff:1.1.1.1",
  "64:ff9b::1.1.1.1",
])("%s is a public address", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

/** The error of connecting to the server under a name or an address; names resolve to `addresses`. */
async function errorOf(
  hostname: string,
  addresses: readonly string[],
): Promise<string | undefined> {
  const { port } = server.address() as AddressInfo;
  const connect = publicConnector({}, (_hostname, { all }, done) => {
    const found: LookupAddress[] = addresses.map((address) => ({
      address,
      family: 4,
    }));
    if (all === true) {
      done(null, found);
    } else {
      done(null, found[0]!.address, 4);
    }
  });
  return await new Promise((resolve) => {
    connect(
      { hostname, protocol: "http:", port: String(port) },
      (error, socket) => {
        socket?.destroy();
        resolve(error?.message);
      },
    );
  });
}

test.each([
  ["127.0.0.1", []],
  ["[::ffff:127.0.0.1]", []],
  ["rebound.example", ["127.0.0.1"]],
  ["rebound.example", ["1.1.1.1", "127.0.0.1"]],
])(
  "no connection is made to %s, which resolves to %j",
  async (name, addresses) => {
    expect(await errorOf(name, addresses)).toContain("not at a public address");
    expect(connections).toBe(0);
  },
);
