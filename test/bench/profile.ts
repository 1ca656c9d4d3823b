// Profiles the gateway under load (npm run bench:profile): self time by function, by file and by package.
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";
import { withCleanup, type Cleanup } from "./cleanup.ts";
import { LOADS, type Load } from "./load-requests.ts";
import { loadOf } from "./options.ts";
import { readProfile, type Share } from "./profile-reading.ts";
import { startTestbed } from "./testbed.ts";

const USAGE = `Usage: npm run bench:profile -- [options]
  --load NAME       one of ${LOADS.join(",")} (plain)
  --concurrency N   connections (64)
  --seconds N       profiled time (10)
  --out FILE        keep the profile, for Chrome's developer tools: FILE.cpuprofile
`;

interface ProfileOptions {
  readonly load: Load;
  readonly concurrency: number;
  readonly seconds: number;
  readonly out: string | null;
}

/** After less, V8 is still compiling. */
const WARMUP_MS = 9_000;
const SHOWN = 40;

async function profile(
  { load, concurrency, seconds, out }: ProfileOptions,
  cleanup: Cleanup,
): Promise<void> {
  const testbed = await startTestbed(cleanup, { peers: [] });
  const target = testbed.targets.find(({ name }) => name === "gateway");
  if (target === undefined) {
    throw new Error("gateway not found");
  }
  const run = (durationMs: number, salt: string) =>
    testbed.load(target, {
      load,
      salt,
      schedule: { kind: "closed", concurrency, warmupMs: 0, durationMs },
    });
  await run(WARMUP_MS, "warm-up");
  const file = resolve(out ?? `${testbed.directory}/gateway.cpuprofile`);
  mkdirSync(dirname(file), { recursive: true });
  await testbed.gateway.meter.reset();
  await testbed.gateway.ask({ probe: "profile" });
  const result = await run(seconds * 1_000, "profile");
  await testbed.gateway.ask({ probe: "profiled", file });
  const { cpuMs } = await testbed.gateway.meter.read();
  const shares = readProfile(
    JSON.parse(readFileSync(file, "utf8")),
    result.answered,
  );
  process.stdout.write(
    `${result.answered} ${load} calls, ${concurrency} connections, ${(cpuMs / result.answered).toFixed(3)} ms of CPU each (all threads, including the profiler's)\n`,
  );
  print("By package and folder", shares.packages);
  print("By file", shares.files);
  print("By function", shares.functions);
  if (out !== null) {
    process.stdout.write(
      `\n${file} opens in Chrome's developer tools (Performance).\n`,
    );
  }
}

function print(title: string, shares: readonly Share[]): void {
  process.stdout.write(`\n${title} (µs of self time per call)\n`);
  for (const { name, share, microsPerCall } of shares.slice(0, SHOWN)) {
    process.stdout.write(
      `${(share * 100).toFixed(1).padStart(6)} % ${microsPerCall.toFixed(1).padStart(8)}  ${name}\n`,
    );
  }
}

const OPTIONS = {
  load: { type: "string", default: "plain" },
  concurrency: { type: "string", default: "64" },
  seconds: { type: "string", default: "10" },
  out: { type: "string" },
} as const;

const options = readCommandLine(
  USAGE,
  OPTIONS,
  ({ load, concurrency, seconds, out }): ProfileOptions => ({
    load: loadOf("load", load),
    concurrency: wholeNumberOf("concurrency", concurrency),
    seconds: numberOf("seconds", seconds),
    out: out ?? null,
  }),
);
process.exitCode = await withCleanup(async (cleanup) => {
  await profile(options, cleanup);
  return 0;
});
