import { expect, test } from "vitest";
import { readTime } from "./history-reader.ts";

const FROM = Date.UTC(2026, 10, 21, 9, 0, 5);
const read = (typed: string) =>
  readTime(typed, FROM, FROM + 60_000, "Europe/Zurich");

test("a time before the history is answered with its start, in the zone of the page", () => {
  expect(read("2026-11-21T09:00:04Z")).toEqual({
    at: undefined,
    mistake: "The history starts on 21 Nov, 10:00:05. Choose a later time.",
  });
  expect(read("2026-11-21T09:00:05Z")).toEqual({ at: FROM });
});

test("an unreadable time is answered with examples, and no time is no mistake", () => {
  expect(read("the other day")).toEqual({
    at: undefined,
    mistake: expect.stringContaining('"the other day" is not a valid time'),
  });
  expect(read(" ")).toEqual({ at: undefined });
});
