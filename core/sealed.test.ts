import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openBytes, sealBytes } from "./sealed.ts";

const key = randomBytes(32);

test("a sealed text opens with its key and place only, and if nothing was altered", () => {
  const sealed = sealBytes("sk-provider-ü", key, "row 1");
  expect(openBytes(sealed, key, "row 1")).toBe("sk-provider-ü");
  expect(openBytes(sealed, key, "row 2")).toBeUndefined();
  expect(openBytes(sealed, key)).toBeUndefined();
  expect(openBytes(sealed, randomBytes(32), "row 1")).toBeUndefined();
  for (const at of sealed.keys()) {
    const altered = Buffer.from(sealed);
    altered[at] = (altered[at] ?? 0) ^ 1;
    expect(openBytes(altered, key, "row 1"), `byte ${at}`).toBeUndefined();
  }
  expect(openBytes(sealed.subarray(0, 27), key, "row 1")).toBeUndefined();
});

test("the same text is sealed differently each time", () => {
  expect(sealBytes("text", key)).not.toEqual(sealBytes("text", key));
});
