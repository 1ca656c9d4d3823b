import fc from "fast-check";
import { DateTime } from "luxon";
import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { LIFETIME, dayOf, windowAt, windowEnd } from "./budget-windows.ts";

function span(
  duration: string,
  at: string,
  timeZone: string,
): [string, string] {
  const { start, end } = windowAt(duration, Date.parse(at), timeZone);
  const local = (ms: number) =>
    DateTime.fromMillis(ms, { zone: timeZone }).toISO({
      suppressMilliseconds: true,
    }) ?? "";
  return [local(start), local(end)];
}

describe("windows", () => {
  test("have a name with their start", () => {
    const at = Date.parse("2026-11-21T13:14:15.678Z");
    expect(windowAt("1d", at, "UTC")).toEqual({
      name: "1d@2026-11-21T00:00:00.000Z",
      start: Date.parse("2026-11-21T00:00:00Z"),
      end: Date.parse("2026-11-22T00:00:00Z"),
    });
    expect(windowAt("1d", at, "Europe/Berlin").name).toBe(
      "1d@2026-11-20T23:00:00.000Z",
    );
  });

  test("without a duration never end", () => {
    expect(windowAt(null, 0, "UTC")).toEqual({
      name: "all",
      start: -Infinity,
      end: Infinity,
    });
  });

  test.each([
    ["30s", "13:14:00", "13:14:30"],
    ["15m", "13:00:00", "13:15:00"],
    ["1h", "13:00:00", "14:00:00"],
    ["7m", "13:11:00", "13:18:00"],
    ["5h", "10:00:00", "15:00:00"],
    ["12h", "12:00:00", "24:00:00"],
    ["24h", "00:00:00", "24:00:00"],
  ])("%s starts at %s within the day", (duration, start, end) => {
    const day = Date.parse("2026-11-21T00:00:00Z");
    const at = (clock: string) => {
      const [hours = 0, minutes = 0, seconds = 0] = clock
        .split(":")
        .map(Number);
      return day + hours * HOUR_MS + minutes * 60_000 + seconds * 1_000;
    };
    expect(windowAt(duration, at("13:14:15"), "UTC")).toMatchObject({
      start: at(start),
      end: at(end),
    });
  });

  test("that do not divide the day end at midnight", () => {
    expect(span("5h", "2026-11-21T23:00:00Z", "UTC")).toEqual([
      "2026-11-21T20:00:00Z",
      "2026-11-22T00:00:00Z",
    ]);
    expect(span("7m", "2026-11-21T23:59:00Z", "UTC")).toEqual([
      "2026-11-21T23:55:00Z",
      "2026-11-22T00:00:00Z",
    ]);
  });

  test.each([
    ["1w", "2026-11-16", "2026-11-23"],
    ["7d", "2026-11-16", "2026-11-23"],
    ["1mo", "2026-11-01", "2026-12-01"],
    ["30d", "2026-11-01", "2026-12-01"],
    ["3mo", "2026-10-01", "2027-01-01"],
    ["12mo", "2026-01-01", "2027-01-01"],
    // Day 20,778 since 1970-01-01 and week 2,968 since its Monday.
    ["2d", "2026-11-21", "2026-11-23"],
    ["48h", "2026-11-21", "2026-11-23"],
    ["2w", "2026-11-16", "2026-11-30"],
  ])("%s runs from %s", (duration, start, end) => {
    expect(span(duration, "2026-11-21T13:14:15Z", "UTC")).toEqual([
      `${start}T00:00:00Z`,
      `${end}T00:00:00Z`,
    ]);
  });

  test("of a day last 23 or 25 hours when the clocks change", () => {
    expect(span("1d", "2026-03-29T12:00:00Z", "Europe/Berlin")).toEqual([
      "2026-03-29T00:00:00+01:00",
      "2026-03-30T00:00:00+02:00",
    ]);
    expect(span("1d", "2026-10-25T12:00:00Z", "Europe/Berlin")).toEqual([
      "2026-10-25T00:00:00+02:00",
      "2026-10-26T00:00:00+01:00",
    ]);
    expect(span("1d", "2026-03-08T12:00:00Z", "America/New_York")).toEqual([
      "2026-03-08T00:00:00-05:00",
      "2026-03-09T00:00:00-04:00",
    ]);
    expect(span("1w", "2026-11-01T12:00:00Z", "America/New_York")).toEqual([
      "2026-10-26T00:00:00-04:00",
      "2026-11-02T00:00:00-05:00",
    ]);
    expect(span("1mo", "2026-03-29T12:00:00Z", "Europe/Berlin")).toEqual([
      "2026-03-01T00:00:00+01:00",
      "2026-04-01T00:00:00+02:00",
    ]);
  });

  test("of hours follow the wall clock when it changes", () => {
    expect(span("6h", "2026-10-25T03:30:00Z", "Europe/Berlin")).toEqual([
      "2026-10-25T00:00:00+02:00",
      "2026-10-25T06:00:00+01:00",
    ]);
    expect(span("2h", "2026-03-08T07:30:00Z", "America/New_York")).toEqual([
      "2026-03-08T03:00:00-04:00",
      "2026-03-08T04:00:00-04:00",
    ]);
  });

  test("of an hour and less have equal lengths in a repeated hour", () => {
    expect(span("1h", "2026-10-25T00:30:00Z", "Europe/Berlin")).toEqual([
      "2026-10-25T02:00:00+02:00",
      "2026-10-25T02:00:00+01:00",
    ]);
    expect(span("30m", "2026-11-01T06:40:00Z", "America/New_York")).toEqual([
      "2026-11-01T01:30:00-05:00",
      "2026-11-01T02:00:00-05:00",
    ]);
  });

  test("start with the day where midnight is skipped or repeated", () => {
    // Beirut sets its clocks forward at midnight, Havana back from 1:00 to midnight.
    expect(span("1d", "2024-03-31T12:00:00Z", "Asia/Beirut")[0]).toBe(
      "2024-03-31T01:00:00+03:00",
    );
    expect(span("1d", "2024-03-30T12:00:00Z", "Asia/Beirut")[1]).toBe(
      "2024-03-31T01:00:00+03:00",
    );
    for (const at of [
      "2024-11-03T04:30:00Z",
      "2024-11-03T05:30:00Z",
      "2024-11-03T17:00:00Z",
    ]) {
      expect(span("1d", at, "America/Havana")[0]).toBe(
        "2024-11-03T00:00:00-04:00",
      );
    }
  });

  test("need a time zone that exists", () => {
    expect(() => windowAt("1d", 0, "Europe/Atlantis")).toThrow(
      '"Europe/Atlantis" is not a time zone: use an IANA name such as Europe/Berlin, or UTC.',
    );
  });

  test("cover time without gap or overlap", () => {
    const zones = [
      "UTC",
      "Europe/Berlin",
      "America/New_York",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "Asia/Beirut",
      "America/Havana",
      "America/Santiago",
      "Africa/Casablanca",
      "Pacific/Apia",
    ];
    // Moments near clock changes, which random values rarely hit.
    const changes = zones.flatMap((zone) =>
      changesOf(zone).map((at) => ({ zone, at })),
    );
    const moment = fc.oneof(
      fc.record({
        zone: fc.constantFrom(...zones),
        at: fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2040, 0) }),
      }),
      fc
        .tuple(
          fc.constantFrom(...changes),
          fc.integer({ min: -26 * HOUR_MS, max: 26 * HOUR_MS }),
        )
        .map(([{ zone, at }, aside]) => ({ zone, at: at + aside })),
    );
    const duration = fc
      .tuple(
        fc.integer({ min: 1, max: 90 }),
        fc.constantFrom("s", "m", "h", "d", "w", "mo"),
      )
      .map(([count, unit]) => `${count}${unit}`);
    const fresh = (text: string, at: number, zone: string) => {
      // Another time first, so that the answer is computed, not cached.
      windowAt(text, Date.UTC(1980, 5), zone);
      return windowAt(text, at, zone);
    };
    fc.assert(
      fc.property(duration, moment, (text, { zone, at }) => {
        const window = fresh(text, at, zone);
        expect(window.start).toBeLessThanOrEqual(at);
        expect(window.end).toBeGreaterThan(at);
        expect(fresh(text, window.start, zone)).toEqual(window);
        expect(fresh(text, window.end - 1, zone)).toEqual(window);
        expect(fresh(text, window.end, zone).start).toBe(window.end);
        expect(fresh(text, window.start - 1, zone).end).toBe(window.start);
        const between =
          window.start + Math.floor((window.end - window.start) / 3);
        expect(fresh(text, between, zone)).toEqual(window);
        expect(windowEnd(window.name, zone)).toBe(window.end);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** Moments at which the zone's clocks change, 2005 to 2030. */
function changesOf(zone: string): number[] {
  const changes: number[] = [];
  const offset = (at: number) => DateTime.fromMillis(at, { zone }).offset;
  for (let at = Date.UTC(2005, 0); at < Date.UTC(2030, 0); at += DAY_MS) {
    if (offset(at) !== offset(at + DAY_MS)) {
      changes.push(at + DAY_MS / 2);
    }
  }
  return changes;
}

test("the window of a budget that never resets has no end", () => {
  expect(windowEnd(LIFETIME.name, "UTC")).toBe(Infinity);
});

test("the day is the zone's", () => {
  const at = Date.parse("2026-11-21T23:30:00Z");
  expect(dayOf(at, "UTC")).toBe("2026-11-21");
  expect(dayOf(at, "Europe/Berlin")).toBe("2026-11-22");
  expect(dayOf(at, "America/New_York")).toBe("2026-11-21");
  expect(dayOf(Date.parse("2024-03-31T12:00:00Z"), "Asia/Beirut")).toBe(
    "2024-03-31",
  );
});
