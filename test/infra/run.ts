/*
 * `npm run test:infra`: runs each file of scenarios on a separate machine (machine.sh), several at a time; some share one.
 * `npm run test:infra -- -t rotation`, or `-- faults`: scenarios whose name, or file name, contains this.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { inProject } from "../../infra/project-files.ts";
import { deployedState, isSaved } from "./deployed-state.ts";
import { mergeReports } from "./merge-reports.ts";
import {
  CONTINUED,
  FROM_DEPLOYED,
  FROM_NOTHING,
  scenarioOf,
} from "./scenarios.ts";
import { runScript } from "./two-engines.ts";

/** Machines at a time: two cores are then seldom idle, and more would only wait for each other. */
const MACHINES = Number(process.env["HEARTH_TEST_MACHINES"] ?? "3");
/** Real plugins missing in PULUMI_HOME are downloaded: their machine uses this computer's network, one at a time. */
const DOWNLOADED =
  process.env["HEARTH_PULUMI_PLUGINS"] === "real" &&
  process.env["PULUMI_HOME"] === undefined;

const SCENARIOS = [...FROM_NOTHING, ...FROM_DEPLOYED];
/** Part of the name of the first test, where it deploys what the later ones need. */
const DEPLOYING_TESTS: Readonly<Record<string, string>> = {
  up: "first up",
  "postgres-major": "an image of another major version",
};
const WIDTH = Math.max(...SCENARIOS.map(({ length }) => length));

/** Scenarios of one machine, in their order. */
type Group = readonly string[];

interface Outcome {
  readonly group: Group;
  readonly passed: boolean;
  readonly seconds: number;
  /** Path of vitest's JSON report, if the run wrote one. */
  readonly report: string;
}

/** Runs a command with a prefix before each line of output; returns its exit code. */
function run(
  prefix: string,
  [command = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  const child = spawn(command, args, {
    cwd: inProject("."),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on("line", (line) =>
      process.stdout.write(`${prefix}${line}\n`),
    );
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

function vitest(verb: "list" | "run", options: readonly string[]): string[] {
  return [
    process.execPath,
    inProject("node_modules/vitest/vitest.mjs"),
    verb,
    "--config",
    "test/infra/vitest.config.ts",
    ...options,
  ];
}

/** Arguments that select the tests whose name contains a pattern, or the other one; all tests without a pattern. */
function named(pattern: string | undefined, other?: string): readonly string[] {
  if (pattern === undefined) {
    return [];
  }
  return ["-t", other === undefined ? pattern : `${pattern}|${other}`];
}

/** The scenarios selected by file names and a pattern of test names, by machine. */
async function select(
  files: readonly string[],
  pattern: string | undefined,
  directory: string,
): Promise<readonly Group[]> {
  const list = join(directory, "list.json");
  const code = await run(
    "",
    vitest("list", [...files, ...named(pattern), `--json=${list}`]),
  );
  if (code !== 0) {
    process.exit(code);
  }
  const tests = JSON.parse(readFileSync(list, "utf8")) as readonly {
    readonly file: string;
  }[];
  const selected = new Set(tests.map(({ file }) => scenarioOf(file)));
  const missing = [...selected].filter((each) => !SCENARIOS.includes(each));
  if (missing.length > 0) {
    throw new Error(
      `${missing.join(", ")}: add to one of the lists in test/infra/scenarios.ts`,
    );
  }
  const chosen = SCENARIOS.filter((scenario) => selected.has(scenario));
  const continued = CONTINUED.filter((scenario) => selected.has(scenario));
  return chosen
    .filter((scenario) => !continued.slice(1).includes(scenario))
    .map((scenario) => (scenario === continued[0] ? continued : [scenario]));
}

async function runGroup(
  group: Group,
  pattern: string | undefined,
  { directory, state }: { readonly directory: string; readonly state: string },
): Promise<Outcome> {
  const started = performance.now();
  const [first = ""] = group;
  const report = join(directory, `${first}.json`);
  const code = await run(
    `${first.padEnd(WIDTH)} `,
    [
      // A machine always ends with this program.
      "setpriv",
      "--pdeathsig",
      "KILL",
      inProject("test/infra/machine.sh"),
      "run",
      first,
      ...vitest("run", [
        ...group.map((scenario) => `test/infra/${scenario}.scenario.ts`),
        ...named(pattern, DEPLOYING_TESTS[first]),
      ]),
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
    ],
    {
      HEARTH_DEPLOYED_STATE: state,
      ...(DOWNLOADED ? { HEARTH_TEST_NETWORK: "host" } : {}),
    },
  );
  return {
    group,
    passed: code === 0,
    seconds: (performance.now() - started) / 1000,
    report,
  };
}

/** Runs all groups, one per available machine; those that need the deployed state start once it is saved. */
async function runAll(
  selected: readonly Group[],
  pattern: string | undefined,
  place: { readonly directory: string; readonly state: string },
): Promise<readonly Outcome[]> {
  const waiting = [...selected];
  const outcomes: Outcome[] = [];
  const isReady = ([first = ""]: Group) =>
    FROM_NOTHING.includes(first) ||
    isSaved(place.state) ||
    outcomes.some(({ group }) => group.includes("up"));
  if (!selected.flat().includes("up") && !selected.every(isReady)) {
    outcomes.push(await runGroup(["up"], DEPLOYING_TESTS["up"], place));
    if (!isSaved(place.state)) {
      throw new Error("no state was saved by the first up of up.scenario.ts");
    }
  }
  const machine = async () => {
    while (waiting.length > 0) {
      const at = waiting.findIndex(isReady);
      const [group] = at < 0 ? [] : waiting.splice(at, 1);
      if (group === undefined) {
        await sleep(500);
      } else {
        outcomes.push(await runGroup(group, pattern, place));
      }
    }
  };
  await Promise.all(Array.from({ length: DOWNLOADED ? 1 : MACHINES }, machine));
  return outcomes;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    testNamePattern: { type: "string", short: "t" },
    "outputFile.json": { type: "string" },
    // As .ci/run gives it to every suite.
    reporter: { type: "string", multiple: true },
  },
});
const { testNamePattern: pattern } = values;
const directory = mkdtempSync(join(tmpdir(), "hearth-infra-reports-"));
try {
  await runScript("scripts/toolchain.sh", "pulumi");
  await runScript("test/infra/machine.sh", "images");
  const selected = await select(positionals, pattern, directory);
  const outcomes = await runAll(selected, pattern, {
    directory,
    state: deployedState(),
  });
  for (const { group, seconds, passed } of outcomes) {
    process.stdout.write(
      `${group.join(", ").padEnd(WIDTH)} ${(seconds / 60).toFixed(1)} min${passed ? "" : " FAILED"}\n`,
    );
  }
  const file = values["outputFile.json"];
  if (file !== undefined) {
    mergeReports(outcomes, file);
  }
  process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true });
}
