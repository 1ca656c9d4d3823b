import { afterEach, expect, test } from "vitest";
import { onStopSignal } from "./signals.ts";

afterEach(() => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    process.removeAllListeners(signal);
  }
});

test("a signal repeated within a second is ignored; later it exits", () => {
  let now = 0;
  const stops: string[] = [];
  const exits: number[] = [];
  onStopSignal(
    (signal) => stops.push(signal),
    () => now,
    (code) => exits.push(code),
  );
  process.emit("SIGINT");
  now = 999;
  process.emit("SIGINT");
  expect([stops, exits]).toEqual([["SIGINT"], []]);
  now = 1000;
  process.emit("SIGINT");
  expect([stops, exits]).toEqual([["SIGINT"], [1]]);
});

test("another signal exits at once", () => {
  const exits: number[] = [];
  onStopSignal(
    () => undefined,
    () => 0,
    (code) => exits.push(code),
  );
  process.emit("SIGINT");
  process.emit("SIGTERM");
  expect(exits).toEqual([1]);
});
