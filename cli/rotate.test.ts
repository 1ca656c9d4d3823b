import { expect, test } from "vitest";
import { rotate } from "./rotate.ts";
import { runVerb } from "./verb.ts";

test.each([
  ["notes --grace 2h", "--grace is for master"],
  ["postgres --end", "--end is for master"],
  ["master --end --grace 2h", "use one of them"],
  ["master --grace soon", "must be a duration"],
])(
  "hearth rotate %s is rejected before anything changes",
  async (words, fault) => {
    await expect(runVerb(rotate, words.split(" "))).rejects.toThrow(fault);
  },
);
