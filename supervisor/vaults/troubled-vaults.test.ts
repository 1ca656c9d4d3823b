import { expect, test } from "vitest";
import type { Couch } from "./couch.ts";
import { troubledVaults } from "./troubled-vaults.ts";

const store = (answer: unknown): Couch => ({
  url: "http://127.0.0.1:5984",
  admin: "admin",
  ask: async () => answer,
  find: async () => answer,
});
const AT = "2026-11-22T11:01:00.000Z";

test("vaults are reported that hang, or were reopened or failed within the last hour", async () => {
  const found = await troubledVaults(
    store({
      uptime: 5,
      hung_databases: ["family"],
      reopened_databases: [
        { database: "notes", at: AT },
        { database: "family", at: AT },
      ],
      failing_databases: [
        { database: "work", at: AT, reason: "damaged_file" },
        { database: "from-an-earlier-release", at: AT },
      ],
    }),
  );
  expect([...found.hung]).toEqual([
    ["notes", false],
    ["family", true],
  ]);
  expect(found.failing).toEqual([
    { database: "work", reason: "damaged_file" },
    { database: "from-an-earlier-release", reason: "disk" },
  ]);
});

test("CouchDB reports none", async () => {
  const found = await troubledVaults(store({ uptime: 5, memory: {} }));
  expect(found).toEqual({ hung: new Map(), failing: [] });
});
