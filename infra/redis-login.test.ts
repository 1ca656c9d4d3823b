import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { buildRedisUsers } from "./redis-login.ts";

const hash = (password: string) =>
  createHash("sha256").update(password).digest("hex");

test("one user with all rights, with hashes only", () => {
  expect(buildRedisUsers(["secret"])).toBe(
    `user default on #${hash("secret")} ~* &* +@all\n`,
  );
});

test("during a rotation both passwords are valid, in their order", () => {
  expect(buildRedisUsers(["new", "old"])).toBe(
    `user default on #${hash("new")} #${hash("old")} ~* &* +@all\n`,
  );
});
