import { expect, test } from "vitest";
import { serverAddress } from "./server-address.ts";

test.each([
  ["http://host:4000//", "http://host:4000"],
  ["https://anna:pass@word@host/base/", "https://host/base"],
  ["anna:password@host", "host"],
  ["http://host/@anna", "http://host/@anna"],
])("%s is used and shown as %s", (text, expected) => {
  expect(serverAddress(text)).toBe(expected);
});
