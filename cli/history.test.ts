import { expect, test } from "vitest";
import { MINUTE_MS } from "../core/duration.ts";
import type { HistoryEntry } from "../supervisor/history/history.ts";
import { groupMaintenance } from "./history.ts";

function entry(more: Partial<HistoryEntry>): HistoryEntry {
  return {
    at: 0,
    kind: "check",
    name: "gateway",
    from: "up",
    to: "maintenance",
    reason: "new disk",
    ...more,
  };
}

test("checks that enter or leave maintenance together are one row", () => {
  const ended = { at: 9000, from: "maintenance", to: "up" };
  const asked = entry({ kind: "act", name: "maintenance", to: "asked" });
  expect(
    groupMaintenance([
      entry({}),
      entry({ name: "notes", from: "down" }),
      entry({ name: "disk" }),
      asked,
      entry({ ...ended, reason: "answered 200" }),
      entry({ ...ended, name: "notes", reason: "62 GB free" }),
    ]),
  ).toEqual([
    entry({ name: "3 checks", from: null }),
    asked,
    entry({ ...ended, name: "2 checks", reason: null }),
  ]);
});

test.each<[string, Partial<HistoryEntry>]>([
  ["of another reason", { name: "notes", reason: "move" }],
  ["of another time", { name: "notes", at: MINUTE_MS }],
  ["of another state", { name: "notes", to: "paused" }],
])("an entry %s has its own row", (_, more) => {
  const entries = [entry({}), entry(more)];
  expect(groupMaintenance(entries)).toEqual(entries);
});

test("checks that fail at the same time have their own rows", () => {
  const entries = [
    entry({ to: "pending", reason: "timed out" }),
    entry({ name: "notes", to: "pending", reason: "timed out" }),
  ];
  expect(groupMaintenance(entries)).toEqual(entries);
});
