import { hash } from "node:crypto";
import { expect, it } from "vitest";
import { KnownKeys } from "./known-keys.ts";

function key(of: number): string {
  return `proxy.cache:${hash("sha256", String(of))}`;
}

it("knows the keys that were added, and no others", () => {
  const known = new KnownKeys();
  const keys = Array.from({ length: 2_000 }, (_, i) => key(i));
  for (const one of keys.slice(0, 1_000)) {
    known.add(one);
  }
  // Some share a slot with a later one.
  expect(
    keys.slice(0, 1_000).filter((one) => known.has(one)).length,
  ).toBeGreaterThan(950);
  expect(keys.slice(1_000).filter((one) => known.has(one))).toEqual([]);
  expect(known.has(keys[999] ?? "")).toBe(true);
});
