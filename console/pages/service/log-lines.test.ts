import { expect, test } from "vitest";
import { readLogLine } from "./log-lines.ts";

const AT = Date.UTC(2026, 10, 26, 13, 3, 5);

test.each([
  [
    JSON.stringify({
      level: 30,
      time: AT,
      pid: 7,
      part: "notes",
      msg: "listening",
      port: 5984,
      path: "a b",
    }),
    {
      time: "26 Nov, 14:03:05",
      look: "none",
      text: 'listening port=5984 path="a b"',
    },
  ],
  [
    JSON.stringify({ level: 50, time: AT, error: { message: "no space" } }),
    { time: "26 Nov, 14:03:05", look: "bad", text: 'error="no space"' },
  ],
  ['{"level":40,"msg":"slow"}', { time: "", look: "warn", text: "slow" }],
  [
    "2026-11-26 13:03:05.123 UTC [12] LOG:  checkpoint starting",
    {
      time: "26 Nov, 14:03:05",
      look: "none",
      text: "[12] LOG:  checkpoint starting",
    },
  ],
  [
    "2026-11-26 13:03:05 UTC [12] FATAL:  no password",
    { time: "26 Nov, 14:03:05", look: "bad", text: "[12] FATAL:  no password" },
  ],
  ["{ not JSON", { time: "", look: "none", text: "{ not JSON" }],
  [
    "2026-11-26 13:03:05 plain",
    { time: "", look: "none", text: "2026-11-26 13:03:05 plain" },
  ],
])("the line %s", (line, read) => {
  expect(readLogLine(line, "Europe/Berlin")).toEqual(read);
});

test("a long line is cut", () => {
  expect(readLogLine("x".repeat(2000), "UTC").text).toHaveLength(1001);
});
