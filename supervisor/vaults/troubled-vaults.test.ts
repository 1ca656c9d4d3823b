import { expect, test } from "vitest";
import type { Couch } from "./couch.ts";
import { troubledVaults } from "./troubled-vaults.ts";

const store = (answer: unknown): Couch => ({
  url: "http://127.0.0.1:5984",
  admin: "admin",
  ask: async () => answer,
  find: async () => answer,
});
const now = Date.parse("2026-11-22T12:00:00.000Z");

test("a hung vault is reported, and for an hour one that was reopened or failed", async () => {
  const at = (time: string) => `2026-11-22T${time}:00.000Z`;
  const found = await troubledVaults(
    store({
      uptime: 5,
      hung_databases: ["family"],
      reopened_databases: [
        { database: "old", at: at("10:59") },
        { database: "notes", at: at("11:01") },
        { database: "family", at: at("11:30") },
      ],
      failing_databases: [
        { database: "old", at: at("10:59") },
        { database: "work", at: at("11:01") },
      ],
    }),
    now,
  );
  expect([...found.hung]).toEqual([
    ["notes", false],
    ["family", true],
  ]);
  expect(found.failing).toEqual(["work"]);
});

test("CouchDB reports none", async () => {
  const found = await troubledVaults(store({ uptime: 5, memory: {} }), now);
  expect(found).toEqual({ hung: new Map(), failing: [] });
});
