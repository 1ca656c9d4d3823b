import { defineConfig } from "vitest/config";

/** For test/infra/run.ts, which runs each file on a separate machine. */
export default defineConfig({
  test: {
    include: ["test/infra/*.scenario.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // After a failed first `up`, all later tests would fail.
    bail: 1,
    pool: "forks",
    fileParallelism: false,
  },
});
