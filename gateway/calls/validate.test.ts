import { expect, test } from "vitest";
import { z } from "zod";
import { queryLimit, queryNumber } from "../admin/kinds/values.ts";
import { validateBody } from "./validate.ts";

const SCHEMA = z.object({
  order: z.enum(["asc", "desc"]).optional(),
  state: z.enum(["on", "off"], "must be on or off").optional(),
  search: z.string().optional(),
  page: queryNumber(1, 100, 1),
  limit: queryLimit(100),
});

test.each([
  [{ order: "up" }, "`order` must be one of asc, desc."],
  [{ order: 1 }, "`order` must be one of asc, desc."],
  [{ state: "up" }, "`state` must be on or off."],
  [{ search: 1 }, "`search` must be a string."],
  [{ search: ["a", "b"] }, "`search` must be a string, not a list."],
  [{ page: "two" }, "`page` must be a whole number."],
  [{ page: ["1", "2"] }, "`page` must be one whole number."],
  [{ limit: ["1", "2"] }, "`limit` must be one whole number."],
])("%j is rejected with the values that are allowed", (body, sentence) => {
  expect(() => validateBody(SCHEMA, body)).toThrow(sentence);
});
