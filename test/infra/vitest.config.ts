import { defineConfig } from "vitest/config";

/** For test/infra/run.ts, which gives each file a machine of its own. */
export default defineConfig({
  test: {
    include: ["test/infra/*.scenario.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // A stack that did not come up fails everything after it.
    bail: 1,
    pool: "forks",
    fileParallelism: false,
  },
});
