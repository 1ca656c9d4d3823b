import { defineConfig } from "vitest/config";

/** `npm run test:agents`: coding agents and SDKs through the gateway. */
export default defineConfig({
  test: {
    include: ["test/agents/*.agent.ts"],
    globalSetup: ["test/servers/setup.ts"],
    // Ends what hangs: a program that retries for ever, too.
    testTimeout: 240_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    pool: "forks",
    // Each program takes hundreds of megabytes and a whole core at its start.
    maxWorkers: 1,
  },
});
