import { expect, test } from "vitest";
import { parse } from "yaml";
import { settingsList } from "./stack-file.ts";

test("a new stack's file lists all settings, and none of the example's hosts", () => {
  const list = settingsList();
  expect(parse(list)).toBeNull();
  expect(list).toContain("# hearth:postgresVersion: 18\n");
  expect(list).not.toMatch(/ssh:|publish:/);
});
