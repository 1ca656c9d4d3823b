import { expect, test } from "vitest";
import { MAX_IN_PROGRESS, MAX_STREAMS, SocketStreams } from "./streams.ts";
import { Turn } from "./turn.ts";

const message = () => ({ text: Buffer.from("{}"), isWarmUp: false });
const memory = { find: () => null, remember: () => undefined };

/** Starts the next turn; null: all wait. */
function start(streams: SocketStreams): string | null | undefined {
  const next = streams.next();
  if (next === null) {
    return undefined;
  }
  next.stream.turn = new Turn(memory, false);
  return next.stream.id;
}

test("calls of one stream wait for each other, those of others only for a place", () => {
  const streams = new SocketStreams();
  streams.add("a", message());
  streams.add("a", message());
  streams.add(null, message());
  expect([start(streams), start(streams), start(streams)]).toEqual([
    "a",
    null,
    undefined,
  ]);
  for (let at = 0; at < MAX_IN_PROGRESS; at++) {
    streams.add(`more-${at}`, message());
  }
  while (start(streams) !== undefined) {
    // Until there is no place.
  }
  expect(streams.inProgress).toHaveLength(MAX_IN_PROGRESS);
  expect(streams.dropWaiting()).toHaveLength(3);
  streams.inProgress.forEach((turn) => turn.ended());
});

test("the streams and waiting messages of a connection are bounded", () => {
  const streams = new SocketStreams();
  for (let at = 0; at < MAX_STREAMS; at++) {
    streams.add(`stream-${at}`, message());
  }
  expect(() => streams.add("one-more", message())).toThrow("32 streams");
  streams.add(null, message());
  expect(() => {
    for (let at = 0; at < 64; at++) {
      streams.add("stream-0", message());
    }
  }).toThrow("wait for their turn");
});
