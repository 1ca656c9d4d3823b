import { expect, test } from "vitest";
import { identityIn, makeIdentity } from "./age.ts";

test("an identity that was written down with a wrong character is rejected with the advice to compare it", async () => {
  const identity = await makeIdentity();
  const wrong = identity.replace(/.$/, (last) => (last === "Q" ? "P" : "Q"));
  expect(await identityIn(`# a comment\n${identity}\n`)).toBe(identity);
  await expect(identityIn(wrong)).rejects.toThrow("compare each character");
});
