import { defineConfig } from "vitest/config";
import { InOrder } from "./scenarios.ts";

/** For test/infra/run.ts, which starts vitest on a separate machine for each file, or for those that continue from each other. */
export default defineConfig({
  test: {
    include: ["test/infra/*.scenario.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // After a failed first `up`, all later tests would fail.
    bail: 1,
    pool: "forks",
    fileParallelism: false,
    // The stack, its provider and the receiver of its alerts stay for the next file.
    isolate: false,
    sequence: { sequencer: InOrder },
  },
});
