// Measures whether memory and event-loop delay stay flat under a steady load (npm run bench:soak).
import { numberOf, readCommandLine } from "../../scripts/command-line.ts";
import { withCleanup, type Cleanup } from "./cleanup.ts";
import { describeMachine, type Machine } from "./machine.ts";
import { addTo, rounded, type Tally } from "./measure.ts";
import { writeToPage } from "./performance-page.ts";
import { proveAll, type Proof } from "./proofs.ts";
import { slopeOf } from "./slope.ts";
import { startTestbed } from "./testbed.ts";

const USAGE = `Usage: npm run bench:soak -- [options]
  --minutes N   how long (30)
  --rate N      calls a second: plain, streamed (a fifth as many), repeated ones and embeddings, in turn (300)
  --json        one JSON value on standard output
  --write       write the results into docs/performance.md
`;

interface SoakOptions {
  readonly minutes: number;
  readonly rate: number;
  readonly json: boolean;
  readonly write: boolean;
}

/** One sample, as `--json` prints it. */
interface Sample {
  readonly minute: number;
  readonly calls_per_second: number;
  readonly rss_mb: number;
  readonly heap_mb: number;
  readonly loop_delay_p50_ms: number;
  readonly loop_delay_p99_ms: number;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly errors: number;
}

interface SoakResults {
  readonly samples: readonly Sample[];
  /** Slope over the second half, after the warm-up. */
  readonly rss_slope_mb_per_hour: number;
  readonly loop_delay_p99_slope_ms_per_hour: number;
  readonly proofs: readonly Proof[];
  readonly machine: Machine;
}

const LOADS = ["plain", "stream", "cached", "embeddings"] as const;
/** The longest interval between samples; short soaks use shorter ones. */
const SAMPLE_SECONDS = 15;
const MIN_SAMPLES = 8;

async function soak(
  { minutes, rate }: SoakOptions,
  cleanup: Cleanup,
): Promise<SoakResults> {
  const machine = describeMachine();
  const testbed = await startTestbed(cleanup, { peers: [] });
  const target = testbed.targets.find(({ name }) => name === "gateway");
  if (target === undefined) {
    throw new Error("gateway not found");
  }
  const tally: Tally = { answered: 0, fromCache: 0 };
  const samples: Sample[] = [];
  const startedAt = performance.now();
  const elapsedMinutes = () => (performance.now() - startedAt) / 60_000;
  const seconds = Math.min(SAMPLE_SECONDS, (minutes * 60) / MIN_SAMPLES);
  for (let at = 0; elapsedMinutes() < minutes; at++) {
    const load = LOADS[at % LOADS.length] ?? "plain";
    await testbed.gateway.meter.reset();
    const result = await testbed.load(target, {
      load,
      // Streams cost many times as much as other calls.
      schedule: {
        kind: "open",
        rate: load === "stream" ? Math.max(1, rate / 5) : rate,
        warmupMs: 0,
        durationMs: seconds * 1_000,
      },
      salt: `soak ${at}`,
    });
    addTo(tally, result);
    const cost = await testbed.gateway.meter.read();
    const sample: Sample = {
      minute: rounded(elapsedMinutes(), 2),
      calls_per_second: rounded(result.calls / result.seconds, 1),
      rss_mb: rounded(cost.rssMb, 1),
      heap_mb: rounded(cost.heapMb, 1),
      loop_delay_p50_ms: rounded(cost.loopDelay.p50, 2),
      loop_delay_p99_ms: rounded(cost.loopDelay.p99, 2),
      p50_ms: result.latency?.p50 ?? null,
      p99_ms: result.latency?.p99 ?? null,
      errors: result.errors,
    };
    samples.push(sample);
    process.stderr.write(`${load}: ${JSON.stringify(sample)}\n`);
  }
  await testbed.gateway.drained();
  const secondHalf = samples.slice(Math.floor(samples.length / 2));
  const slope = (value: (sample: Sample) => number) =>
    slopeOf(
      secondHalf.map((sample) => [sample.minute / 60, value(sample)] as const),
    );
  return {
    samples,
    rss_slope_mb_per_hour: rounded(
      slope(({ rss_mb }) => rss_mb),
      1,
    ),
    loop_delay_p99_slope_ms_per_hour: rounded(
      slope(({ loop_delay_p99_ms }) => loop_delay_p99_ms),
      2,
    ),
    proofs: await proveAll(testbed, tally),
    machine,
  };
}

function describe(
  { minutes, rate }: SoakOptions,
  results: SoakResults,
): string {
  const { samples, machine } = results;
  const [first, last] = [samples[0], samples.at(-1)];
  const highest = Math.max(...samples.map(({ rss_mb }) => rss_mb));
  const errors = samples.reduce((sum, sample) => sum + sample.errors, 0);
  return [
    `${minutes} minutes at ${rate} calls/s (streams ${rate / 5}/s), ${machine.date}, ${machine.cores} × ${machine.cpu}, Node ${machine.node}:`,
    "",
    `- RSS ${first?.rss_mb} MB at first, ${highest} MB at most, ${last?.rss_mb} MB at the end; slope over the second half ${results.rss_slope_mb_per_hour} MB per hour`,
    `- event-loop delay p99 ${first?.loop_delay_p99_ms} ms at first, ${last?.loop_delay_p99_ms} ms at the end; slope ${results.loop_delay_p99_slope_ms_per_hour} ms per hour`,
    `- ${errors} failed calls; ${results.proofs.filter(({ holds }) => holds).length} of ${results.proofs.length} proofs hold`,
    "",
  ].join("\n");
}

const OPTIONS = {
  minutes: { type: "string", default: "30" },
  rate: { type: "string", default: "300" },
  json: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
} as const;

const options = readCommandLine(
  USAGE,
  OPTIONS,
  ({ minutes, rate, json, write }): SoakOptions => ({
    minutes: numberOf("minutes", minutes),
    rate: numberOf("rate", rate),
    json,
    write,
  }),
);
process.exitCode = await withCleanup(async (cleanup) => {
  const results = await soak(options, cleanup);
  const text = describe(options, results);
  if (options.write) {
    writeToPage("soak", text);
  }
  process.stdout.write(
    options.json ? `${JSON.stringify(results, null, 2)}\n` : text,
  );
  const whole =
    results.samples.every(({ errors }) => errors === 0) &&
    results.proofs.every(({ holds }) => holds);
  if (!whole) {
    process.stderr.write("hearth: the soak test failed.\n");
  }
  return whole ? 0 : 1;
});
