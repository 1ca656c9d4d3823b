import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { onInterrupts } from "./interrupts.ts";

test("repeated signals of one Ctrl-C count once, a later Ctrl-C is the second", () => {
  const source = new EventEmitter();
  const received: string[] = [];
  let now = 0;
  onInterrupts(
    () => received.push("first"),
    () => received.push("second"),
    source,
    () => now,
  );
  // Signals from the terminal, bin/run.js and npm.
  for (const at of [0, 3, 40]) {
    now = at;
    source.emit("SIGINT");
  }
  expect(received).toEqual(["first"]);
  for (const at of [1_500, 1_510]) {
    now = at;
    source.emit("SIGINT");
  }
  expect(received).toEqual(["first", "second"]);
});
