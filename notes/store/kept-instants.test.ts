import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { firstKeptInstant, isKept, keptInstant } from "./kept-instants.ts";

const now = Date.UTC(2026, 10, 22, 17, 30, 15);
const at = (text: string): string =>
  new Date(keptInstant(Date.parse(text), now)).toISOString();

test("keeps everything for a day, hours for a week, days for a quarter, then weeks", () => {
  expect(at("2026-11-22T03:12:07.123Z")).toBe("2026-11-22T03:12:07.123Z");
  expect(at("2026-11-20T03:12:07Z")).toBe("2026-11-20T03:00:00.000Z");
  expect(at("2026-10-20T03:12:07Z")).toBe("2026-10-20T00:00:00.000Z");
  expect(new Date(Date.parse("2026-03-02")).getUTCDay()).toBe(1);
  expect(at("2026-03-05T03:12:07Z")).toBe("2026-03-02T00:00:00.000Z");
});

const moment = fc.integer({ min: 0, max: 400 * DAY_MS });

test("every instant kept at a later time was kept at earlier times", () => {
  fc.assert(
    fc.property(moment, moment, moment, (instant, first, second) => {
      const earlier = instant + Math.min(first, second);
      const later = instant + Math.max(first, second);
      const kept = keptInstant(instant, later);
      expect(keptInstant(kept, earlier)).toBe(kept);
      expect(keptInstant(kept, later)).toBe(kept);
    }),
  );
});

test("a version that is part of a kept state is kept", () => {
  fc.assert(
    fc.property(moment, moment, moment, moment, (since, length, age, probe) => {
      const until = since + length;
      const present = until + age;
      const instant = keptInstant(Math.min(since + probe, present), present);
      if (instant >= since && instant < until) {
        expect(isKept(since, until, present)).toBe(true);
      }
    }),
  );
});

test("the first kept instant is kept, and there is none between it and the start", () => {
  fc.assert(
    fc.property(moment, moment, fc.nat(), (from, age, probe) => {
      const present = from + age;
      const first = firstKeptInstant(from, present);
      expect(first).toBeGreaterThanOrEqual(from);
      expect(keptInstant(first, present)).toBe(first);
      if (first > from) {
        const between = from + (probe % (first - from));
        expect(keptInstant(between, present)).toBeLessThan(from);
      }
    }),
  );
});
