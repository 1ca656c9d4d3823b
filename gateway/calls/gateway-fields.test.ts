import { expect, test } from "vitest";
import { providerBody } from "./gateway-fields.ts";

test("fields in additional_drop_params do not reach a provider", () => {
  const body = { model: "m", seed: 1, top_k: 2 };
  const dropped = ["seed", "model"];
  expect(providerBody({ ...body, additional_drop_params: dropped })).toEqual({
    model: "m",
    top_k: 2,
  });
});

test("as many fields as fit into a body, and as many to drop, are read", () => {
  const names = Array.from({ length: 400_000 }, (_, at) => `field_${at}`);
  const fields = Object.fromEntries(names.map((name) => [name, 1]));
  const body = { model: "m", ...fields, additional_drop_params: names };
  expect(providerBody(body)).toEqual({ model: "m" });
});
