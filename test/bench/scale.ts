// Measures what calls cost with several gateways on one Redis and one Postgres, and calculates how far that goes (npm run bench:scale).
import { pino } from "pino";
import { createPool } from "../../gateway/database/pool.ts";
import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";
import { withCleanup } from "./cleanup.ts";
import { ScaleBench, type ScaleOptions } from "./scale-bench.ts";
import { describeScale } from "./scale-report.ts";
import { startTestbed } from "./testbed.ts";

const USAGE = `Usage: npm run bench:scale -- [options]
  --instances LIST   gateways at once (1,2,4,8)
  --connections N    connections to each gateway, in a closed loop (32)
  --workers LIST     then workers of one gateway, one run for each number (1,2)
  --rate N           calls a second to each worker while its processor time is measured (200)
  --drains LIST      drains at once, without gateways (1,16)
  --seconds N        measured time of each run (5)
  --json             print one JSON value on standard output
`;

const OPTIONS = {
  instances: { type: "string", default: "1,2,4,8" },
  connections: { type: "string", default: "32" },
  workers: { type: "string", default: "1,2" },
  rate: { type: "string", default: "200" },
  drains: { type: "string", default: "1,16" },
  seconds: { type: "string", default: "5" },
  json: { type: "boolean", default: false },
} as const;

const options = readCommandLine(USAGE, OPTIONS, (values): ScaleOptions => {
  const listOf = (option: "instances" | "workers" | "drains") =>
    values[option]
      .split(",")
      .map((text) => wholeNumberOf(option, text))
      .toSorted((one, other) => one - other);
  return {
    instances: listOf("instances"),
    connections: wholeNumberOf("connections", values.connections),
    workers: listOf("workers"),
    rate: wholeNumberOf("rate", values.rate),
    drains: listOf("drains"),
    seconds: numberOf("seconds", values.seconds),
    json: values.json,
  };
});
process.exitCode = await withCleanup(async (cleanup) => {
  const testbed = await startTestbed(cleanup, { peers: [] });
  const pool = await cleanup.keep(
    createPool(testbed.databaseUrl, 1, pino({ level: "silent" })),
    (it) => it.end(),
  );
  const results = await new ScaleBench(options, cleanup, testbed, pool).run();
  process.stdout.write(
    options.json
      ? `${JSON.stringify(results, null, 2)}\n`
      : describeScale(results),
  );
  return results.complete && results.runs.every(({ errors }) => errors === 0)
    ? 0
    : 1;
});
