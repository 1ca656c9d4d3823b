import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import {
  growthAlarm,
  growthOf,
  growthWords,
  isMeasurementDue,
  withMeasurement,
} from "./growth.ts";
import { openNotesState, type NotesState } from "./notes-state.ts";

let directory: string;
let state: NotesState;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-growth-"));
  state = openNotesState(join(directory, "notes-state.json"), () => {});
});
afterEach(() => rmSync(directory, { recursive: true }));

const grow = (vault: string, days: number, perDay: number): void =>
  state.change(vault, {
    sizes: Array.from({ length: days + 1 }, (_, at) => ({
      at: at * DAY_MS,
      value: 5e6 + at * perDay,
    })),
  });

test("the trend of the last month predicts when all vaults together fill the disk", () => {
  grow("work", 10, 2e6);
  grow("family", 10, 1e6);
  expect(growthOf(state, "work", 300e6)).toEqual({
    days: 10,
    perDay: 2e6,
    fullInDays: 100,
  });
  expect(growthWords(growthOf(state, "work", 300e6))).toBe(
    "Growing by 2.0 MB per day (measured over 10 days); disk full in 100 days at the growth of all vaults.",
  );
  expect(growthAlarm(state, 300e6)).toBeUndefined();
  expect(growthAlarm(state, 60e6)).toMatchObject({
    level: "warning",
    text: "the disk will be full in 20 days at the current growth of the vaults: 60.0 MB free; vault work grows fastest, by 2.0 MB per day.",
    command: "hearth notes space work",
  });
});

test("there is no forecast without measurements, growth or a trend", () => {
  expect(growthWords(growthOf(state, "none", 1e6))).toBe(
    "Growth unknown: needs two days of measurements.",
  );
  grow("new", 1, 9e9);
  grow("shrinking", 10, -1000);
  state.change("jumping", {
    sizes: [1, 9, 2, 8, 3].map((value, at) => ({ at: at * DAY_MS, value })),
  });
  for (const vault of ["new", "shrinking", "jumping"]) {
    expect(growthOf(state, vault, 1000).fullInDays).toBeNull();
  }
  expect(growthWords(growthOf(state, "shrinking", 1000))).toBe(
    "Shrinking by 1 kB per day (measured over 10 days).",
  );
  expect(growthAlarm(state, 1000)).toBeUndefined();
});

test("one measurement a day is kept for 30 days; those ahead of a clock that was set back are removed", () => {
  let sizes: { at: number; value: number }[] = [];
  for (let at = 0; at < 50; at += 1) {
    sizes = withMeasurement(sizes, at * DAY_MS, at);
  }
  expect(sizes.map(({ value }) => value)).toEqual(
    Array.from({ length: 30 }, (_, at) => 20 + at),
  );
  expect(isMeasurementDue([], 0)).toBe(true);
  expect(isMeasurementDue(sizes, 49 * DAY_MS + 1)).toBe(false);
  expect(isMeasurementDue(sizes, 50 * DAY_MS)).toBe(true);
  expect(isMeasurementDue(sizes, 30 * DAY_MS)).toBe(true);
  expect(withMeasurement(sizes, 30 * DAY_MS, 7).at(-1)).toEqual({
    at: 30 * DAY_MS,
    value: 7,
  });
});
