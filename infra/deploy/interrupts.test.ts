import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { onInterrupts } from "./interrupts.ts";

test("repeated signals of one Ctrl-C count once, a later Ctrl-C is the second", () => {
  const source = new EventEmitter();
  const told: string[] = [];
  let now = 0;
  onInterrupts(
    () => told.push("first"),
    () => told.push("second"),
    source,
    () => now,
  );
  // The terminal, bin/run.js and npm.
  for (const at of [0, 3, 40]) {
    now = at;
    source.emit("SIGINT");
  }
  expect(told).toEqual(["first"]);
  for (const at of [1_500, 1_510]) {
    now = at;
    source.emit("SIGINT");
  }
  expect(told).toEqual(["first", "second"]);
});
