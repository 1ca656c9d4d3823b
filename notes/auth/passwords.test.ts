import { expect, test } from "vitest";
import {
  hashPassword,
  isPasswordHash,
  openPasswordCheck,
  parsePasswordHash,
} from "./passwords.ts";

test("a new hash is valid in the ini, and only the correct password passes, also when cached", async () => {
  const text = await hashPassword("not-a-secret", 10);
  expect(isPasswordHash(text)).toBe(true);
  const hash = parsePasswordHash(text)!;
  const check = openPasswordCheck(() => 10);
  expect(await check.derive("wrong", hash)).toBe(false);
  expect(check.isRemembered("not-a-secret", hash)).toBe(false);
  expect(await check.derive("not-a-secret", hash)).toBe(true);
  expect(check.isRemembered("not-a-secret", hash)).toBe(true);
  expect(check.isRemembered("wrong", hash)).toBe(false);
  expect(await check.derive("anything", undefined)).toBe(false);
});

test("a hash in CouchDB's format is accepted: the salt is text, the key 32 bytes", async () => {
  // Recorded from a real CouchDB, whose admin password was not-a-secret-admin.
  const hash = parsePasswordHash(
    "-pbkdf2:sha256-fb4b85e9a68366b38cc4f651e3a765424a72e4002cb301d86d7d1784a942323c,a1b2c3d4e5f60718,600000",
  )!;
  const check = openPasswordCheck(() => 10);
  expect(await check.derive("not-a-secret-admin", hash)).toBe(true);
});

test("plain passwords are not hashes", () => {
  expect(isPasswordHash("hunter2")).toBe(false);
  expect(isPasswordHash("-pbkdf2:sha256-00,salt,10")).toBe(false);
});
