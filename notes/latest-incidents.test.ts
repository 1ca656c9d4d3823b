import { expect, test } from "vitest";
import { HOUR_MS } from "../core/duration.ts";
import { openLatestIncidents } from "./latest-incidents.ts";

test("the latest incident of each database is listed for an hour, or until the database is removed", () => {
  let now = Date.parse("2026-11-22T12:00:00.000Z");
  const incidents = openLatestIncidents(() => now);
  const names = () => incidents.latest().map(({ database }) => database);
  incidents.add("notes");
  now += HOUR_MS / 2;
  incidents.add("work");
  incidents.add("family");
  incidents.forget("family");
  expect(names()).toEqual(["notes", "work"]);
  now += HOUR_MS / 2;
  expect(incidents.latest()).toEqual([
    { database: "work", at: "2026-11-22T12:30:00.000Z" },
  ]);
  incidents.add("work");
  now += HOUR_MS - 1;
  expect(names()).toEqual(["work"]);
});

test("an incident does not hide one of another reason", () => {
  const incidents = openLatestIncidents(() => 0);
  incidents.add("notes", "damaged_file");
  incidents.add("notes", "disk");
  incidents.add("notes", "disk");
  expect(incidents.latest().map(({ reason }) => reason)).toEqual([
    "damaged_file",
    "disk",
  ]);
  incidents.forget("notes");
  expect(incidents.latest()).toEqual([]);
});
