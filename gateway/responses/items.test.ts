import { expect, test } from "vitest";
import { asInput, idsOf, itemsOf, referenceIn, withIds } from "./items.ts";

const ID = "resp_00000000000000000000000000000abc";

test("items are stored with ids, types and lists of content, and sent again as they came", () => {
  const items = withIds(
    [
      ...itemsOf("Hello"),
      { role: "assistant", content: "Hi" },
      { type: "function_call_output", call_id: "c", output: "1" },
      { id: "rs_1", type: "reasoning", summary: [] },
    ],
    ID,
  );
  const digits = ID.slice("resp_".length);
  expect(items).toEqual([
    {
      id: `msg_${digits}_0`,
      type: "message",
      role: "user",
      status: "completed",
      content: [{ type: "input_text", text: "Hello" }],
    },
    {
      id: `msg_${digits}_1`,
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Hi", annotations: [] }],
    },
    {
      id: `fco_${digits}_2`,
      type: "function_call_output",
      call_id: "c",
      output: "1",
    },
    { id: "rs_1", type: "reasoning", summary: [] },
  ]);
  // A provider knows its own ids only.
  expect(items.map((item) => asInput(item)["id"])).toEqual([
    undefined,
    undefined,
    undefined,
    "rs_1",
  ]);
});

test.each([
  [{ type: "item_reference", id: "msg_1" }, "msg_1"],
  [{ id: "msg_1" }, "msg_1"],
  [{ type: null, id: "msg_1" }, "msg_1"],
  [{ id: "msg_1", role: "user", content: "x" }, null],
  [{ type: "function_call", id: "fc_1" }, null],
  [{ type: "item_reference" }, null],
  ["msg_1", null],
  [null, null],
])("%j refers to %j", (item, id) => {
  expect(referenceIn(item)).toBe(id);
});

test("ids are stored as Postgres can index them", () => {
  const ids = idsOf([
    { id: "a\0b" },
    { id: "\uD800" },
    { id: 1 },
    { id: "x".repeat(9_999) },
  ]);
  expect(ids).toEqual(["a\uFFFDb", "\uFFFD", "x".repeat(256)]);
});
