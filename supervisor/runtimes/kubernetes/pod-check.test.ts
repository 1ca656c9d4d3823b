import { expect, test } from "vitest";
import { checkSchema } from "../../checks/config.ts";
import { withPodCheck } from "./pod-check.ts";

test("the pods are checked, unless the configuration does so", () => {
  expect(withPodCheck([])).toMatchObject([
    { kind: "pods", name: "kubernetes", expect: { ready_within: 300_000 } },
  ]);
  const own = checkSchema.parse({ kind: "pods", name: "my-pods" });
  expect(withPodCheck([own])).toEqual([own]);
});
