import { pino } from "pino";
import { expect, test } from "vitest";
import { DEFAULT_RUNNER } from "../config/runner.ts";
import type { Preload } from "../config/types.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import { Preloads } from "./preloads.ts";

const deployment = (id: string, preload: Preload) =>
  testDeployment({ id, runner: { ...DEFAULT_RUNNER, preload } });

function openPreloads(start: string) {
  const at = { now: Date.parse(start), there: true };
  const loaded: string[] = [];
  const preloads = new Preloads({
    timeZone: "Europe/Berlin",
    isThere: () => at.there,
    load: async ({ id }) => {
      loaded.push(id);
    },
    log: pino({ level: "silent" }),
    now: () => at.now,
  });
  return { at, loaded, preloads };
}

test("a model is loaded once at the start, and at the times of its schedules in the configured time zone", () => {
  const { at, loaded, preloads } = openPreloads("2026-06-01T05:00:00Z");
  const models = [
    deployment("start", { atStart: true, crons: [] }),
    // 05:30 UTC in summer.
    deployment("morning", { atStart: false, crons: ["30 7 * * *"] }),
    testDeployment({ id: "cloud" }),
  ];
  const tickAt = (time: string) => {
    at.now = Date.parse(time);
    preloads.tick(models);
    return loaded.splice(0);
  };
  expect(tickAt("2026-06-01T05:00:00Z")).toEqual(["start"]);
  expect(tickAt("2026-06-01T05:29:59Z")).toEqual([]);
  expect(tickAt("2026-06-01T05:30:00Z")).toEqual(["morning"]);
  expect(tickAt("2026-06-01T05:30:01Z")).toEqual([]);
  expect(tickAt("2026-06-02T05:30:01Z")).toEqual(["morning"]);
});

test("a model whose runner is not there is loaded when it comes back within an hour", () => {
  const { at, loaded, preloads } = openPreloads("2026-06-01T05:00:00Z");
  const models = [deployment("start", { atStart: true, crons: ["0 9 * * *"] })];
  at.there = false;
  preloads.tick(models);
  at.now += 3_500_000;
  at.there = true;
  preloads.tick(models);
  expect(loaded).toEqual(["start"]);
  at.there = false;
  at.now = Date.parse("2026-06-01T07:00:01Z");
  preloads.tick(models);
  at.now += 3_700_000;
  at.there = true;
  preloads.tick(models);
  expect(loaded).toEqual(["start"]);
});
