import fc from "fast-check";
import { expect, test } from "vitest";
import { SseParser, type SseEvent } from "./sse.ts";

function parse(chunks: readonly Uint8Array[]): readonly SseEvent[] {
  const parser = new SseParser();
  return [
    ...chunks.flatMap((chunk) => [...parser.push(chunk)]),
    ...parser.end(),
  ];
}

const parseText = (text: string): readonly SseEvent[] =>
  parse([Buffer.from(text)]);
const data = (...texts: string[]): readonly SseEvent[] =>
  texts.map((text) => ({ event: null, data: text }));

/** Cuts bytes at any places, also inside characters and between a carriage return and its line feed. */
function cut(
  bytes: Uint8Array,
  places: readonly number[],
): readonly Uint8Array[] {
  const sorted = [
    0,
    ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  return sorted
    .slice(1)
    .map((end, index) => bytes.subarray(sorted[index], end));
}

const lineText = fc
  .string({ unit: "grapheme", maxLength: 30 })
  .map((text) => text.replaceAll(/[\r\n\uFEFF]/gu, "·"));
const event = fc.record({
  event: fc.option(
    lineText.filter((text) => text !== "" && !text.startsWith(" ")),
  ),
  data: fc.array(lineText, { minLength: 1, maxLength: 4 }),
  comment: fc.option(lineText),
  id: fc.option(lineText),
});

test("any chunking, line ending and comments give the events that were sent", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 6 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.boolean(),
      fc.array(fc.nat(), { maxLength: 40 }),
      (events, newline, bom, places) => {
        const text = events
          .map((one) =>
            [
              ...(one.comment === null ? [] : [`:${one.comment}`]),
              ...(one.event === null ? [] : [`event: ${one.event}`]),
              ...(one.id === null ? [] : [`id: ${one.id}`]),
              ...one.data.map((line) => `data: ${line}`),
              "",
              "",
            ].join(newline),
          )
          .join("");
        const bytes = Buffer.from((bom ? "\uFEFF" : "") + text);
        const sent = events.map((one) => ({
          event: one.event,
          data: one.data.join("\n"),
        }));
        expect(parse(cut(bytes, places))).toEqual(sent);
      },
    ),
  );
});

test("arbitrary bytes in any chunking give the same events as in one piece", () => {
  const bytes = fc.array(
    fc.oneof(
      fc
        .constantFrom(
          "data:",
          "data: ",
          "event: x",
          ":",
          "\n",
          "\r",
          "\r\n",
          "\n\n",
          "[DONE]",
          "é",
          "🦊",
          "\uFEFF",
        )
        .map((text) => [...Buffer.from(text)]),
      fc.nat(255).map((byte) => [byte]),
    ),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(
      bytes,
      fc.array(fc.nat(), { maxLength: 20 }),
      (pieces, places) => {
        const whole = Uint8Array.from(pieces.flat());
        expect(parse(cut(whole, places))).toEqual(parse([whole]));
        expect(parse([...whole].map((byte) => Uint8Array.of(byte)))).toEqual(
          parse([whole]),
        );
      },
    ),
  );
});

test.each<[string, string, readonly SseEvent[]]>([
  [
    "one space after the colon is dropped, no more",
    "data:a\n\ndata: b\n\ndata:  c\n\n",
    data("a", "b", " c"),
  ],
  ["data lines are joined", "data: a\ndata: b\n\n", data("a\nb")],
  ["a field without a colon has no value", "data\n\n", data("")],
  ["blank lines alone are no event", "\n\n\r\n\n", []],
  ["comments and keep-alives are no event", ": ping\n\n:\n\n", []],
  [
    "an event without data is none, and its name does not stay",
    "event: ping\n\ndata: a\n\n",
    data("a"),
  ],
  [
    "unknown fields are skipped",
    "retry: 5\nid: 7\nfoo: bar\ndata: a\n\n",
    data("a"),
  ],
  ["colons in the data stay", 'data: {"a":1}\n\n', data('{"a":1}')],
  [
    "names of events are kept",
    "event: message_start\ndata: {}\n\n",
    [{ event: "message_start", data: "{}" }],
  ],
  [
    "a last event without its blank line counts at the end",
    "data: a\n\ndata: [DONE]",
    data("a", "[DONE]"),
  ],
])("%s", (_rule, text, events) => {
  expect(parseText(text)).toEqual(events);
});

test("an event is returned as soon as its blank line arrives", () => {
  const parser = new SseParser();
  expect(parser.push(Buffer.from("data: a\n"))).toEqual([]);
  expect(parser.push(Buffer.from("\ndata: b"))).toEqual(data("a"));
  expect(parser.push(Buffer.from("\r\n\r"))).toEqual(data("b"));
  expect(parser.push(Buffer.from("\ndata: c\n\n"))).toEqual(data("c"));
  expect(parser.end()).toEqual([]);
});
