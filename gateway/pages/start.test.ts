import { expect, test } from "vitest";
import { startPage, startView } from "./start.ts";

const facts = {
  version: "1.0.0",
  address: "https://gateway.example.org",
  model: "MODEL",
  ready: true,
  console: undefined,
} as const;

test.each([
  ["http://127.0.0.1:4000", "http://127.0.0.1:4080", true],
  // Of no use to a reader elsewhere.
  ["https://gateway.example.org", "http://127.0.0.1:4080", false],
  ["https://gateway.example.org", "https://console.example.org", true],
  ["http://127.0.0.1:4000", "javascript:alert(1)", false],
  ["http://127.0.0.1:4000", "console", false],
])("at %s, the console %s is linked: %s", (address, console, isLinked) => {
  const view = startView({ ...facts, address, console });
  expect(view.console).toBe(isLinked ? console : null);
  expect(startPage(view).html("system").includes(">Console</a>")).toBe(
    isLinked,
  );
});

test("an unavailable database is shown with what it means", () => {
  const html = startPage(startView({ ...facts, ready: false })).html("system");
  expect(html).toContain("The database is unavailable: known keys work");
  expect(html).toContain("▲");
  expect(startPage(startView(facts)).html("system")).not.toContain(
    "unavailable",
  );
});
