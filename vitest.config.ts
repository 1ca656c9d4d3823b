import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{gateway,notes,supervisor,infra,scripts,test}/**/*.test.ts"],
    globalSetup: ["test/servers/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Two cores: more workers only make the real servers in the tests wait for each other.
    maxWorkers: 2,
  },
});
