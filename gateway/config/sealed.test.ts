import { expect, test } from "vitest";
import { open, seal } from "./sealed.ts";
import { secret } from "./secret.ts";

const key = secret("the salt key of this installation");
const other = secret("another key altogether");

test("a sealed text is decrypted with its key and context", () => {
  const sealed = seal("sk-provider-ключ", key, "models/1");
  expect(sealed).not.toContain("provider");
  const opened = open(sealed, [other, key], "models/1");
  expect(opened?.text.reveal()).toBe("sk-provider-ключ");
  expect(opened?.by).toBe(1);
});

test("another key, another context or a changed byte prevents decryption", () => {
  const sealed = seal("text", key, "models/1");
  expect(open(sealed, [other], "models/1")).toBeNull();
  expect(open(sealed, [key], "models/2")).toBeNull();
  const bytes = Buffer.from(sealed.slice(2), "base64");
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(
      open(`1:${changed.toString("base64")}`, [key], "models/1"),
    ).toBeNull();
  }
  expect(open("2:AAAA", [key], "models/1")).toBeNull();
  expect(open("", [key], "models/1")).toBeNull();
});

test("the same text is sealed differently each time", () => {
  expect(seal("text", key, "a")).not.toBe(seal("text", key, "a"));
});
