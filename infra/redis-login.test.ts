import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { buildRedisUsers } from "./redis-login.ts";

test("one user with all rights, with hashes only", () => {
  expect(buildRedisUsers(["secret"])).toBe(
    `user default on #${hash("sha256", "secret")} ~* &* +@all\n`,
  );
});

test("during a rotation both passwords are valid, in their order", () => {
  expect(buildRedisUsers(["new", "old"])).toBe(
    `user default on #${hash("sha256", "new")} #${hash("sha256", "old")} ~* &* +@all\n`,
  );
});
