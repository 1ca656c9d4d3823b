import { expect, test } from "vitest";
import { readClientAccess } from "./client-access.ts";

const access = (apiBase: string) =>
  readClientAccess({ model: "m", api_key: "x", api_base: apiBase })?.apiBase;

test("an address has no slashes at its end", () => {
  expect(access("https://own.example/v1//")).toBe("https://own.example/v1");
});

test("an address for which a regular expression takes minutes is read", () => {
  const address = `https://own.example/${"/".repeat(500_000)}x`;
  expect(access(address)).toBe(address);
});
