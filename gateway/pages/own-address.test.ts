import { expect, test } from "vitest";
import { isLoopback, ownAddress } from "./own-address.ts";

test.each(["gateway.example.org", "127.0.0.1:4000", "[::1]:4000", "host-a"])(
  "examples have the reader's address: %s",
  (host) => {
    expect(ownAddress({ protocol: "https", host })).toBe(`https://${host}`);
  },
);

test.each(["$(id)", "a b", "x'; rm -rf ~ #", '"><script>', "", "a:b:c"])(
  "an example never contains the host %j",
  (host) => {
    expect(ownAddress({ protocol: "http", host })).toBe(
      "http://localhost:4000",
    );
  },
);

test("only this machine reaches a loopback address", () => {
  expect(isLoopback("http://127.0.0.1:4080")).toBe(true);
  expect(isLoopback("http://[::1]:4080")).toBe(true);
  expect(isLoopback("https://console.example.org")).toBe(false);
});
