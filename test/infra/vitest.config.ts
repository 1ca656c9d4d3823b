import { defineConfig } from "vitest/config";

/** `npm run test:infra`: two real Docker engines; one file, its scenarios in order. */
// eslint-disable-next-line no-restricted-exports -- vitest asks for a default export.
export default defineConfig({
  test: {
    include: ["test/infra/*.scenario.ts"],
    testTimeout: 600_000,
    hookTimeout: 1_800_000,
    // A stack that did not come up fails everything after it.
    bail: 1,
    pool: "forks",
    fileParallelism: false,
  },
});
