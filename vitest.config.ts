import {
  configDefaults,
  defineConfig,
  type TestProjectInlineConfiguration,
} from "vitest/config";
import { SystemsFirst } from "./test/servers/sequencer.ts";

const CODE =
  "{core,gateway,notes,supervisor,console,embedded,cli,infra,scripts}/**";
const LONG = ["**/*.long.test.ts"];
const SERVERS = [`${CODE}/*.server.test.ts`, "test/**/*.test.ts"];
const MOCKED = [`${CODE}/*.mocked.test.ts`];
const REAL_SERVERS: TestProjectInlineConfiguration["test"] = {
  globalSetup: ["test/servers/setup.ts"],
  pool: "forks",
};

/** What tests need decides where they run, and the name of their file says it (CONTRIBUTING.md). */
export default defineConfig({
  test: {
    // Ends what hangs, however busy the machine is.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Polls end with their condition; this is for machines that are busy.
    expect: { poll: { timeout: 30_000 } },
    // Two cores, and tests that often wait: more workers only make the real servers wait for each other.
    maxWorkers: 3,
    // PouchDB's replication asks for the number of changes without a handler, in tests that kill the store meanwhile.
    onUnhandledError: ({ name, stack }) =>
      !(name === "FetchError" && stack?.includes("node-fetch")),
    // Modules are read once a worker, not once a file.
    isolate: false,
    sequence: { sequencer: SystemsFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "servers",
          include: SERVERS,
          exclude: [...configDefaults.exclude, ...LONG],
          ...REAL_SERVERS,
        },
      },
      {
        extends: true,
        // `npm run test:long`; `npm test` runs the others.
        test: { name: "long", include: LONG, ...REAL_SERVERS },
      },
      {
        extends: true,
        test: {
          name: "unit",
          include: [`${CODE}/*.test.ts`],
          exclude: [...configDefaults.exclude, ...LONG, ...SERVERS, ...MOCKED],
          // Makes test/servers refuse to start any.
          env: { TEST_PROJECT: "unit" },
          pool: "threads",
          // One project after the other, as a worker belongs to one.
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "mocked",
          include: MOCKED,
          pool: "threads",
          // A replaced module would stay with those that import it.
          isolate: true,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
