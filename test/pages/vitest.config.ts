import { defineConfig } from "vitest/config";

/** `npm run test:pages`: the pages in a real Chromium. */
export default defineConfig({
  test: {
    include: ["test/pages/*.browser.ts"],
    globalSetup: ["test/servers/setup.ts", "test/pages/find-chromium.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    pool: "forks",
    maxWorkers: 2,
    isolate: false,
  },
});
