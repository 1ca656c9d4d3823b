import { expect, test } from "vitest";
import { summaryOf } from "./compaction-job.ts";
import type { Compaction } from "./compaction.ts";

const skipped = (vault: string): Compaction => ({
  vault,
  status: "skipped",
  why: "only 2 kB can be reclaimed",
  fileBytes: 10_000,
  activeBytes: 8_000,
});
const done = (vault: string, activeBytes: number): Compaction => ({
  vault,
  status: "done",
  beforeBytes: 3_000_000,
  afterBytes: 1_000_000,
  activeBytes,
});

test("few vaults are described one by one", () => {
  expect(summaryOf([])).toBe("There are no vaults.");
  expect(summaryOf([skipped("a"), done("b", 1)])).toBe(
    "Vault a (10 kB) not compacted: only 2 kB can be reclaimed. Vault b compacted from 3.0 MB to 1.0 MB.",
  );
});

test("many vaults are summed up, with the advice for each large one", () => {
  const others = ["c", "d", "e"].map(skipped);
  const next =
    "`hearth compact VAULT` compacts one of the others or names what prevents it.";
  expect(summaryOf([done("a", 1), done("b", 2e9), ...others])).toBe(
    `2 of 5 vaults compacted, from 6.0 MB to 2.0 MB. The notes themselves take 2.0 GB: split vault b, exclude large files, or rebuild it from a device. ${next}`,
  );
  expect(
    summaryOf(["a", "b", ...others.map(({ vault }) => vault)].map(skipped)),
  ).toBe(`None of 5 vaults compacted. ${next}`);
  expect(
    summaryOf(["a", "b", "c", "d", "e"].map((name) => done(name, 1))),
  ).toBe("5 of 5 vaults compacted, from 15.0 MB to 5.0 MB.");
});
