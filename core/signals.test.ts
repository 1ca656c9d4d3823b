import { afterEach, beforeEach, expect, test } from "vitest";
import { onStopSignals } from "./signals.ts";

let now = 0;
let calls: string[] = [];
let forget: () => void;

beforeEach(() => {
  now = 0;
  calls = [];
  forget = onStopSignals(
    (signal) => calls.push(`first ${signal}`),
    (signal) => calls.push(`second ${signal}`),
    { now: () => now },
  );
});

afterEach(() => forget());

test("a signal repeated within a second is ignored; a later one counts", () => {
  process.emit("SIGINT", "SIGINT");
  now = 999;
  process.emit("SIGINT", "SIGINT");
  expect(calls).toEqual(["first SIGINT"]);
  now = 1000;
  process.emit("SIGINT", "SIGINT");
  expect(calls).toEqual(["first SIGINT", "second SIGINT"]);
});

test("another signal counts at once", () => {
  process.emit("SIGINT", "SIGINT");
  process.emit("SIGTERM", "SIGTERM");
  expect(calls).toEqual(["first SIGINT", "second SIGTERM"]);
});

test("signals no longer count after listening has stopped", () => {
  forget();
  process.on("SIGHUP", () => {});
  process.emit("SIGHUP", "SIGHUP");
  process.removeAllListeners("SIGHUP");
  expect(calls).toEqual([]);
});
