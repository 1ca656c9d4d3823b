import { expect, test } from "vitest";
import { fieldsOf } from "./forms.ts";

const FIELDS = 100_000;

test("a field is a text, a repeated one a list", () => {
  expect(fieldsOf("name=Anna+B&team=a&team=b%26c&empty=")).toEqual({
    name: "Anna B",
    team: ["a", "b&c"],
    empty: "",
  });
});

test("a name of a prototype is a name like others", () => {
  const fields = fieldsOf("__proto__=a&constructor=b");
  expect(Object.entries(fields)).toEqual([
    ["__proto__", "a"],
    ["constructor", "b"],
  ]);
});

test("a form is read whose fields, searched one by one, would take minutes", () => {
  const names = Array.from({ length: FIELDS }, (_, at) => `${at}=`);
  expect(Object.keys(fieldsOf(names.join("&")))).toHaveLength(FIELDS);
});

test("a form is read whose repeated field, copied for each value, would take minutes", () => {
  const { same } = fieldsOf("same=x&".repeat(FIELDS));
  expect(same).toHaveLength(FIELDS);
});
