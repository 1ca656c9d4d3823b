// Compares the gateway's journal with SQLite doing the same work (npm run bench:journal).
import { monitorEventLoopDelay } from "node:perf_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCommandLine, wholeNumberOf } from "../../scripts/command-line.ts";
import {
  OPENERS,
  type CandidateName,
  type Sync,
} from "./journal-candidates.ts";
import { describeMachine } from "./machine.ts";
import { markdownTable, median } from "./comparison.ts";

const USAGE = `Usage: npm run bench:journal -- [options]
  --calls N   calls in each run (4000)
  --rounds N  runs of each candidate, in turn; the median counts (7)
  --dir PATH  where to write, on a real disk (the directory for temporary files)
`;

/** Wall time and processor time in µs per call; `block`: 99th percentile of the event loop's delay in ms. */
interface Times {
  readonly wall: number;
  readonly cpu: number;
  readonly block: number;
}

async function run(
  name: CandidateName,
  options: { parent: string; sync: Sync; calls: number; concurrency: number },
): Promise<Times> {
  const { parent, sync, calls, concurrency } = options;
  const dir = mkdtempSync(join(parent, "bench-journal-"));
  const candidate = await OPENERS[name](dir, sync);
  try {
    let next = 0;
    const caller = async () => {
      while (next < calls) {
        const id = `call-${next++}`;
        await candidate.intent(id);
        await candidate.outcome(id);
      }
    };
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const [cpu, at] = [process.cpuUsage(), performance.now()];
    await Promise.all(Array.from({ length: concurrency }, caller));
    const wall = ((performance.now() - at) * 1_000) / calls;
    const { user, system } = process.cpuUsage(cpu);
    const block = delay.percentile(99) / 1e6;
    return { wall, cpu: (user + system) / calls, block };
  } finally {
    await candidate.close();
    rmSync(dir, { recursive: true });
  }
}

const { calls, rounds, dir } = readCommandLine(
  USAGE,
  {
    calls: { type: "string", default: "4000" },
    rounds: { type: "string", default: "7" },
    dir: { type: "string", default: tmpdir() },
  } as const,
  (it) => ({
    calls: wholeNumberOf("calls", it.calls),
    rounds: wholeNumberOf("rounds", it.rounds),
    dir: it.dir,
  }),
);
const rows: string[][] = [];
for (const [sync, concurrency] of [
  ["always", 1],
  ["always", 16],
  ["always", 64],
  ["interval", 64],
] as const) {
  const times = { "own journal": [], "node:sqlite": [] } as Record<
    CandidateName,
    Times[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (const name of ["own journal", "node:sqlite"] as const) {
      times[name].push(
        await run(name, { parent: dir, sync, calls, concurrency }),
      );
    }
  }
  const of = (name: CandidateName, kind: keyof Times) =>
    median(times[name].map((time) => time[kind]));
  const cells = (["wall", "cpu", "block"] as const).flatMap((kind) => {
    if (kind === "block" && sync === "interval") {
      // Neither candidate ever waits.
      return ["–", "–", "–"];
    }
    const [own, sqlite] = [of("own journal", kind), of("node:sqlite", kind)];
    return [own.toFixed(1), sqlite.toFixed(1), (sqlite / own).toFixed(2)];
  });
  rows.push([sync, String(concurrency), ...cells]);
}
const COMPARED = ["own", "sqlite", "ratio"];
const { cores, cpu, node, date } = describeMachine();
process.stdout.write(
  `${date}, ${cores} × ${cpu}, Node ${node}; µs per call, median of ${rounds} alternating runs of ${calls} calls\n\n` +
    markdownTable(
      [
        "sync",
        "calls at once",
        ...["wall", "CPU", "loop blocked, ms"].flatMap((what) =>
          COMPARED.map((name) => `${what}: ${name}`),
        ),
      ],
      rows,
    ),
);
