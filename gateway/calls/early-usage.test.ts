import { expect, test } from "vitest";
import type { RequestedUsage } from "../providers/openai.ts";
import type { StreamPiece } from "../providers/wire.ts";
import { startClock } from "./call-clock.ts";
import { StreamText } from "./stream-text.ts";

const piece = (data: object): StreamPiece => ({
  kind: "pass",
  event: null,
  data: JSON.stringify(data),
});
const DONE: StreamPiece = { kind: "done", event: null, data: "[DONE]" };

function chunk(tokens: number, finish_reason: string | null): StreamPiece {
  const choices = [{ index: 0, delta: { content: "word" }, finish_reason }];
  return piece({ id: "c", choices, usage: { completion_tokens: tokens } });
}

/** The usages that a client receives of a stream. */
function usagesOf(requested: RequestedUsage, pieces: readonly StreamPiece[]) {
  const text = new StreamText(startClock(), requested);
  text.take([...pieces, DONE]);
  const whole = text.whole() ?? "";
  expect(whole.endsWith("data: [DONE]\n\n")).toBe(true);
  return [...whole.matchAll(/"completion_tokens":(\d+)/g)].map(([, count]) =>
    Number(count),
  );
}

test("a usage with every chunk arrives once, with the finish reason", () => {
  const pieces = [chunk(1, null), chunk(2, null), chunk(3, "stop")];
  expect(usagesOf("once", pieces)).toEqual([3]);
  expect(usagesOf("none", pieces)).toEqual([3]);
});

test("a usage with every chunk arrives as often for a client that requests it", () => {
  const pieces = [chunk(1, null), chunk(2, null), chunk(3, "stop")];
  expect(usagesOf("every chunk", pieces)).toEqual([1, 2, 3]);
});

test("a usage that came without the finish reason arrives at the end, if it is wanted", () => {
  const choices = [{ index: 0, delta: {}, finish_reason: "stop" }];
  const pieces = [chunk(1, null), chunk(2, null), piece({ choices })];
  expect(usagesOf("once", pieces)).toEqual([2]);
  expect(usagesOf("none", pieces)).toEqual([]);
});

test("events of other APIs keep their usage", () => {
  const delta = piece({
    type: "message_delta",
    usage: { completion_tokens: 7 },
  });
  expect(usagesOf("none", [delta])).toEqual([7]);
});
