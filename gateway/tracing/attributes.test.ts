import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { expect, test } from "vitest";
import { GEN_AI } from "./attributes.ts";

test("the names of attributes are those of the GenAI conventions", () => {
  const official = Object.entries(conventions)
    .filter(([name]) => name.startsWith("ATTR_"))
    .map(([, value]) => value);
  expect(official).toEqual(expect.arrayContaining(Object.values(GEN_AI)));
});
