import { defineConfig } from "vitest/config";

/** For test/kube/run.ts, which runs all files on one machine: they share its cluster. */
export default defineConfig({
  test: {
    include: ["test/kube/*.scenario.ts"],
    globalSetup: ["test/kube/setup.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Each test of a release continues from the one before.
    bail: 1,
    pool: "forks",
    // The files that only render the chart run next to the one that installs it.
    maxWorkers: 2,
  },
});
