import { expect, test } from "vitest";
import { momentText, parseMoment } from "./moment.ts";

const now = new Date(2026, 10, 22, 17, 30, 15).getTime();

test.each([
  ["yesterday 18:00", new Date(2026, 10, 21, 18, 0)],
  ["Yesterday", new Date(2026, 10, 21)],
  ["9:05", new Date(2026, 10, 22, 9, 5)],
  ["today 09:05:07", new Date(2026, 10, 22, 9, 5, 7)],
  ["2026-10-03", new Date(2026, 9, 3)],
  ["2026-10-03 18:00", new Date(2026, 9, 3, 18)],
  ["3 hours ago", new Date(2026, 10, 22, 14, 30, 15)],
  ["1 day ago", new Date(2026, 10, 21, 17, 30, 15)],
  ["2026-11-01T08:00:00Z", new Date(Date.UTC(2026, 10, 1, 8))],
  ["2026-11-01T08:00+02:00", new Date(Date.UTC(2026, 10, 1, 6))],
  ["now", new Date(now)],
])("%s", (text, expected) => {
  expect(new Date(parseMoment(text, now))).toEqual(expected);
});

test.each(["", "soon", "25:00", "2026-02-30", "2026-13-01", "yesterday 18"])(
  '"%s" is rejected',
  (text) => {
    expect(() => parseMoment(text, now)).toThrow("is not a valid time");
  },
);

test("a time in the future is rejected", () => {
  expect(() => parseMoment("2027-01-01", now)).toThrow("is in the future");
});

test("a printed moment is read as the first second at which what began then was there", () => {
  const at = new Date(2026, 10, 2, 3, 4, 5).getTime();
  expect(momentText(at)).toBe("2026-11-02 03:04:05");
  expect(parseMoment(momentText(at), at)).toBe(at);
  expect(parseMoment(momentText(at + 1), at + 1000)).toBe(at + 1000);
});
