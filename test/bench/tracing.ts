// Throughput with and without tracing every call (npm run bench:tracing): two gateways on the same servers, loaded in turn.
import { median } from "./comparison.ts";
import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";
import { withCleanup, type Cleanup } from "./cleanup.ts";
import type { BenchGateway } from "./gateway.ts";
import { programFile, startProgram } from "./programs.ts";
import { startTestbed, type Target } from "./testbed.ts";

const USAGE = `Usage: npm run bench:tracing -- [options]
  --rounds N    how often each gateway is loaded (6)
  --seconds N   measured time of each round (3)
  --warmup N    calls before the first round, so that all code is compiled (10000)
`;

const CONCURRENCY = 64;

interface TracingBenchOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup: number;
}

interface Measured {
  readonly callsPerSecond: number;
  readonly cpuMsPerCall: number;
}

async function compare(
  { rounds, seconds, warmup }: TracingBenchOptions,
  cleanup: Cleanup,
): Promise<void> {
  const testbed = await startTestbed(cleanup, { peers: [] });
  const collector = await cleanup.keep(
    startProgram(programFile("collector-program.ts"), {
      name: "collector",
      args: [],
    }),
    (it) => it.stop(),
  );
  const { port } = await collector.ask<{ port: number }>({});
  const traced = await testbed.startGateway("traced", {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  });
  const keys = testbed.tenants.map(({ key }) => key);
  const targetOf = (program: BenchGateway): Target => ({
    name: "gateway",
    port: program.port,
    keys,
    headers: {},
    meter: program.meter,
  });
  const targets = { off: targetOf(testbed.gateway), on: targetOf(traced) };

  const measure = async (target: Target, salt: string): Promise<Measured> => {
    const run = (durationMs: number, name: string) =>
      testbed.load(target, {
        load: "plain",
        salt: name,
        schedule: {
          kind: "closed",
          concurrency: CONCURRENCY,
          warmupMs: 0,
          durationMs,
        },
      });
    await run(500, `${salt}-warm-up`);
    await target.meter?.reset();
    const result = await run(seconds * 1_000, salt);
    const cost = await target.meter?.read();
    return {
      callsPerSecond: result.calls / result.seconds,
      cpuMsPerCall: (cost?.cpuMs ?? NaN) / result.answered,
    };
  };

  const off: Measured[] = [];
  const on: Measured[] = [];
  for (const [name, target] of Object.entries(targets)) {
    await testbed.load(target, {
      load: "plain",
      salt: `warm-up-${name}`,
      schedule: { kind: "count", concurrency: CONCURRENCY, calls: warmup },
    });
  }
  for (let round = 0; round < rounds; round++) {
    off.push(await measure(targets.off, `off-${round}`));
    on.push(await measure(targets.on, `on-${round}`));
  }
  const { bytes } = await collector.ask<{ bytes: number }>({});
  if (bytes === 0) {
    throw new Error("the collector received no spans");
  }
  const ratio = (of: (one: Measured) => number) =>
    median(on.map((one, at) => of(one) / of(off[at] as Measured)));
  const show = (name: string, all: readonly Measured[]) =>
    process.stdout.write(
      `${name.padEnd(16)} ${median(all.map((one) => one.callsPerSecond)).toFixed(0)} calls/s, ${median(all.map((one) => one.cpuMsPerCall)).toFixed(3)} ms of CPU per call\n`,
    );
  show("without tracing", off);
  show("every call traced", on);
  process.stdout.write(
    `ratio of a round (median of ${rounds}): ${ratio((one) => one.callsPerSecond).toFixed(3)} of the calls per second, ${ratio((one) => one.cpuMsPerCall).toFixed(3)} of the CPU per call\n`,
  );
}

const options = readCommandLine(
  USAGE,
  {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "3" },
    warmup: { type: "string", default: "10000" },
  } as const,
  ({ rounds, seconds, warmup }): TracingBenchOptions => ({
    rounds: numberOf("rounds", rounds),
    seconds: numberOf("seconds", seconds),
    warmup: wholeNumberOf("warmup", warmup),
  }),
);
process.exitCode = await withCleanup(async (cleanup) => {
  await compare(options, cleanup);
  return 0;
});
