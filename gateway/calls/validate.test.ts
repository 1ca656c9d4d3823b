import { expect, test } from "vitest";
import { z } from "zod";
import { validateBody } from "./validate.ts";

const SCHEMA = z.object({
  order: z.enum(["asc", "desc"]).optional(),
  state: z.enum(["on", "off"], "must be on or off").optional(),
});

test.each([
  [{ order: "up" }, "`order` must be one of asc, desc."],
  [{ order: 1 }, "`order` must be one of asc, desc."],
  [{ state: "up" }, "`state` must be on or off."],
])("%j is rejected with the values that are allowed", (body, sentence) => {
  expect(() => validateBody(SCHEMA, body)).toThrow(sentence);
});
