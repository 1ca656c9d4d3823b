// Compares the speed of the gateway, with all features enabled, to the provider alone and to a minimal proxy (npm run bench).
import { withCleanup, type Cleanup } from "./cleanup.ts";
import { countExpenses } from "./expenses.ts";
import { drawFrontier } from "./frontier-chart.ts";
import { measureFrontier } from "./frontier-runs.ts";
import { describeMachine } from "./machine.ts";
import { measure, rounded, type Run, type Tally } from "./measure.ts";
import { readOptions, type BenchOptions } from "./options.ts";
import { writePicture, writeToPage } from "./performance-page.ts";
import { findPeers } from "./peers.ts";
import { isHopeless, planSteps, type Step } from "./plan.ts";
import { proveAll } from "./proofs.ts";
import { describeMeasurements, describeResults } from "./report.ts";
import { addedBy, ratiosOf, type Results } from "./results.ts";
import { startTestbed, type Testbed } from "./testbed.ts";

/** `--quick` starts no further step after this time, so that it ends within a minute; peers may take longer to start. */
const QUICK_UNTIL_MS = 45_000;

async function bench(
  options: BenchOptions,
  cleanup: Cleanup,
): Promise<Results> {
  const peers = await findPeers(options.peers);
  const machine = describeMachine();
  log("starting Postgres, Redis, the provider, the proxy and the gateway …");
  const testbed = await startTestbed(cleanup, { peers });
  const startedAt = performance.now();
  const rssAfterStart = await rssOf(testbed);
  const expenses = await countExpenses(testbed);
  const steps = planSteps(
    options,
    testbed.targets.map(({ name }) => name),
  );
  const tally: Tally = { answered: 0, fromCache: 0 };
  const runs: Run[] = [];
  let hopeless = 0;
  for (const [at, step] of steps.entries()) {
    if (options.quick && performance.now() - startedAt > QUICK_UNTIL_MS) {
      break;
    }
    log(`${at + 1}/${steps.length} ${nameOf(step)}`);
    if (isHopeless(step, runs)) {
      hopeless++;
    } else {
      runs.push(await measure(testbed, step, tally));
    }
  }
  const frontier = await measureFrontier(testbed, {
    bounds: options.frontier,
    seconds: options.seconds,
    tally,
    log,
  });
  const spent = await expenses();
  const rssAtEnd = await rssOf(testbed);
  log("checking that nothing was skipped …");
  return {
    runs,
    ratios: ratiosOf(runs),
    added: addedBy(runs),
    frontier,
    peers,
    proofs: await proveAll(testbed, tally),
    gateway: {
      ready_ms: rounded(testbed.gateway.readyMs, 0),
      rss_after_start_mb: rssAfterStart,
      rss_most_mb: Math.max(
        rssAfterStart,
        rssAtEnd,
        ...runs
          .filter(({ target }) => target === "gateway")
          .map((run) => run.rss_mb ?? 0),
      ),
      rss_at_end_mb: rssAtEnd,
    },
    expenses: spent,
    left_out: steps.length - runs.length - hopeless,
    machine,
  };
}

async function rssOf({ gateway }: Testbed): Promise<number> {
  const { rssMb } = await gateway.meter.read();
  return rounded(rssMb, 0);
}

function nameOf({ target, load, schedule }: Step): string {
  const how =
    schedule.kind === "open"
      ? `${schedule.rate} calls/s`
      : `${schedule.concurrency} connections`;
  return `${target}: ${load}, ${how}`;
}

/** Logs progress to standard error; standard output is for the results. */
function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

function passed({ runs, proofs }: Results): boolean {
  const failed = runs.filter(
    ({ target, errors }) => target === "gateway" && errors > 0,
  );
  for (const { load, errors, first_error } of failed) {
    log(`hearth: ${errors} ${load} calls failed, first: ${first_error}`);
  }
  for (const { name, detail } of proofs.filter(({ holds }) => !holds)) {
    log(`hearth: not proven: ${name} (${detail})`);
  }
  return failed.length === 0 && proofs.every(({ holds }) => holds);
}

function writeResults(results: Results): void {
  const { frontier } = results;
  const chart =
    frontier.length === 0
      ? ""
      : writePicture(
          "frontier",
          "Calls per second by the bound of p99, a line for each program",
          drawFrontier(frontier),
        );
  writeToPage("results", `${chart}\n\n${describeResults(results)}`);
  writeToPage("measurements", describeMeasurements(results));
}

const options = readOptions();
process.exitCode = await withCleanup(async (cleanup) => {
  const results = await bench(options, cleanup);
  if (options.write) {
    writeResults(results);
  }
  process.stdout.write(
    options.json
      ? `${JSON.stringify(results, null, 2)}\n`
      : `${describeResults(results)}\n${describeMeasurements(results)}`,
  );
  return passed(results) ? 0 : 1;
});
