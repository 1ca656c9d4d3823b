import type { LookupAddress } from "node:dns";
import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { publicConnector } from "./public-connection.ts";

let connections = 0;
const server = createServer((socket) => {
  connections += 1;
  socket.destroy();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(() => server.close());

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
