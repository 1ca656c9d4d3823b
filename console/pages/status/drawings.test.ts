import { expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import type { HourBar } from "../../../supervisor/checks/check-reports.ts";
import { clock } from "../../../core/words.ts";
import { drawDays } from "./day-chart.ts";
import { drawHours } from "./hour-bars.ts";

function hour(index: number, change: Partial<HourBar>): HourBar {
  return {
    hour: index * HOUR_MS,
    looks: 120,
    failures: 0,
    upMs: HOUR_MS,
    downMs: 0,
    apartMs: 0,
    ...change,
  };
}

test("the state of an hour has a colour, a height and words", () => {
  const svg = drawHours(
    [
      hour(0, {}),
      hour(1, { failures: 1, downMs: 30_000 }),
      hour(2, { failures: 9, downMs: 300_000 }),
      hour(3, { upMs: 0, apartMs: HOUR_MS }),
      hour(4, { looks: 0, upMs: 0 }),
      hour(5, { upMs: 0, looks: 1, failures: 1, downMs: 5000 }),
    ],
    { title: "last 24 hours", format: (at) => clock(at, "UTC") },
  );
  const bars = [
    ...svg.matchAll(
      /height="(\d+)" rx="3" fill="var\(--(\w+)\)"><title>([^<]+)</g,
    ),
  ];
  expect(bars.map(([, ...parts]) => parts.join(" "))).toEqual([
    "26 calm 00:00 up",
    "18 warn 01:00 1 failed check",
    "10 bad 02:00 down 5 min",
    "26 rest 03:00 maintenance or not monitored for 1 h",
    "2 none 04:00 not monitored",
    "10 bad 05:00 down 5.0 s",
  ]);
  expect(svg).toContain(
    'aria-label="last 24 hours: 01:00 1 failed check, 02:00 down 5 min, 05:00 down 5.0 s"',
  );
});

test("the most expensive aliases of a month have their own bars, the others share one", () => {
  const chart = drawDays(
    ["a", "b", "c", "d", "e"].flatMap((model, index) => [
      { day: 1, model, spend: 5 - index },
      { day: 3, model, spend: index / 100 },
    ]),
  );
  expect(chart?.series.map(({ name, spend }) => `${name} ${spend}`)).toEqual([
    "a $ 5.00",
    "b $ 4.01",
    "c $ 3.02",
    "others $ 3.07",
  ]);
  expect(chart?.svg.match(/<rect/g)).toHaveLength(4 + 3);
  expect(chart?.svg).toContain(">$ 20</text>");
});

test("a month without spend has no chart", () => {
  expect(drawDays([])).toBeNull();
  expect(drawDays([{ day: 1, model: "local", spend: 0 }])).toBeNull();
});
