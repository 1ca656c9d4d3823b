import { expect, test } from "vitest";
import { notes } from "./notes.ts";

test.each([
  "add",
  "list",
  "remove",
  "setup-uri",
  "rotate",
  "doctor",
  "conflicts",
  "resolve",
  "devices",
  "backup",
  "collect",
  "restore",
  "restore-seed",
])("hearth notes %s has an example and --json", async (name) => {
  const verb = await notes.verbs?.[name]?.();
  expect(verb?.name).toBe(`notes ${name}`);
  expect(verb?.example).toMatch(new RegExp(`^hearth notes ${name}( |$)`));
  expect(Object.keys(verb?.args ?? {})).toContain("json");
});
