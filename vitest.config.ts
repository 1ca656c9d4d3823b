import { configDefaults, defineConfig } from "vitest/config";
import { SystemsFirst } from "./test/servers/sequencer.ts";

const code =
  "{core,gateway,notes,supervisor,console,embedded,cli,infra,scripts}/**";
const servers = [`${code}/*.server.test.ts`, "test/**/*.test.ts"];
const mocked = [`${code}/*.mocked.test.ts`];

/** What tests need decides where they run, and the name of their file says it (CONTRIBUTING.md). */
export default defineConfig({
  test: {
    // Ends what hangs, however busy the machine is.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two cores: more workers only make the real servers in the tests wait for each other.
    maxWorkers: 2,
    // Modules are read once a worker, not once a file.
    isolate: false,
    sequence: { sequencer: SystemsFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "servers",
          include: servers,
          globalSetup: ["test/servers/setup.ts"],
          pool: "forks",
        },
      },
      {
        extends: true,
        test: {
          name: "unit",
          include: [`${code}/*.test.ts`],
          exclude: [...configDefaults.exclude, ...servers, ...mocked],
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
          include: mocked,
          pool: "threads",
          // A replaced module would stay with those that import it.
          isolate: true,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
