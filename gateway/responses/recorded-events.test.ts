import { expect, test } from "vitest";
import type { JsonRecord } from "../../core/json.ts";
import { RecordedEvents } from "./recorded-events.ts";

const piece = (type: string, more: JsonRecord = {}) => ({
  kind: "pass" as const,
  event: type,
  data: JSON.stringify({ type, sequence_number: 77, ...more }),
});

test("events are numbered without gaps; those that the response itself replaces are left out", async () => {
  const rows: (readonly [number, readonly JsonRecord[]])[] = [];
  const events = new RecordedEvents(2, (last, written) => {
    rows.push([last, written]);
    return Promise.resolve();
  });
  events.record(piece("response.created"));
  events.record(piece("response.in_progress"));
  events.record(piece("response.output_text.delta", { delta: "a" }));
  await events.written();
  events.record(piece("response.output_text.delta", { delta: "b" }));
  events.record(piece("response.completed"));
  await events.written();
  await events.written();
  expect(rows).toEqual([
    [
      3,
      [
        { type: "response.in_progress", sequence_number: 2 },
        { type: "response.output_text.delta", delta: "a", sequence_number: 3 },
      ],
    ],
    [
      4,
      [{ type: "response.output_text.delta", delta: "b", sequence_number: 4 }],
    ],
  ]);
});

test("what could not be written is written with what follows, in order", async () => {
  let isAway = true;
  const rows: (readonly JsonRecord[])[] = [];
  const events = new RecordedEvents(0, (_last, written) => {
    if (isAway) {
      return Promise.reject(new Error("away"));
    }
    rows.push(written);
    return Promise.resolve();
  });
  events.record(piece("a"));
  await expect(events.written()).rejects.toThrow("away");
  isAway = false;
  events.record(piece("b"));
  await events.written();
  expect(rows.flat().map(({ type }) => type)).toEqual(["a", "b"]);
});

test("the events of a very long answer are bounded", async () => {
  let bytes = 0;
  const events = new RecordedEvents(0, (_last, written) => {
    bytes += JSON.stringify(written).length;
    return Promise.resolve();
  });
  const delta = "x".repeat(1024 * 1024);
  for (let at = 0; at < 20; at++) {
    events.record(piece("response.output_text.delta", { delta }));
  }
  await events.written();
  expect(bytes).toBeGreaterThan(6 * 1024 * 1024);
  expect(bytes).toBeLessThan(9 * 1024 * 1024);
});
