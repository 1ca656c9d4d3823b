// Breaks the embedded stack in every way there is and tells what its supervisor made of it (npm run test:watching).
import { setTimeout as wait } from "node:timers/promises";
import { inspect } from "node:util";
import { parseDuration } from "../../core/duration.ts";
import {
  answers500,
  diskFull,
  hung,
  killed,
  portTaken,
  runFault,
  slow,
  staysSick,
  type Fault,
  type FaultReport,
} from "./faults.ts";
import { openFaultTestbed, shippedRhythm } from "./fault-testbed.ts";
import { readCommandLine } from "../../scripts/command-line.ts";

/** What is over within half a minute is told to nobody, so that what lasts is given this long. */
const TOLD_AFTER_MS = 45_000;

const FAULTS: readonly Fault[] = [
  ...["postgres", "notes", "echo", "gateway"].map(killed),
  hung("gateway", true),
  hung("notes", false),
  hung("postgres", false),
  answers500,
  slow,
  portTaken("gateway", TOLD_AFTER_MS),
  portTaken("postgres", TOLD_AFTER_MS),
  staysSick,
  diskFull,
];
const names = FAULTS.map(({ name }) => name);

const USAGE = `Usage: npm run test:watching -- [options]
  --every TIME   how often the supervisor looks (${shippedRhythm.every})
  --only NAME    this fault alone: ${names.join(", ")}
`;
const OPTIONS = {
  every: { type: "string", default: shippedRhythm.every },
  only: { type: "string" },
} as const;
const { every, only } = readCommandLine(USAGE, OPTIONS, (values) => {
  if (parseDuration(values.every) === undefined) {
    throw new Error(`--every: ${values.every} is not a time such as 30s.`);
  }
  if (values.only !== undefined && !names.includes(values.only)) {
    throw new Error(
      `--only: ${values.only} is not one of ${names.join(", ")}.`,
    );
  }
  return values;
});

const testbed = await openFaultTestbed({ ...shippedRhythm, every }, true);
const reports: FaultReport[] = [];
let heard: readonly string[] = [];
const wrong: string[] = [];
try {
  for (const fault of FAULTS) {
    if (only !== undefined && fault.name !== only) {
      continue;
    }
    if (fault === diskFull && !testbed.ownDisk) {
      process.stdout.write(
        "The full disk is left out: it needs the right to mount one.\n",
      );
      continue;
    }
    const gatewayBefore = testbed.pidOf("gateway");
    const report = await runFault(testbed, fault);
    reports.push(report);
    process.stdout.write(`${inspect(report, { breakLength: 120 })}\n`);
    wrong.push(...mistakes(report, testbed.pidOf("gateway") !== gatewayBefore));
    // An operator looks at each: budgets begin anew.
    await testbed.restart("gateway");
  }
  await wait(TOLD_AFTER_MS);
  heard = testbed.messages;
} finally {
  await testbed.close();
}
process.stdout.write(`\n${table(reports)}\n`);
for (const mistake of wrong) {
  process.stdout.write(`✕ ${mistake}\n`);
}
process.exitCode = wrong.length === 0 ? 0 : 1;

/** What must never happen, whatever goes wrong. */
function mistakes(
  { fault, done, raised }: FaultReport,
  gatewayReplaced: boolean,
): readonly string[] {
  const heals = done.filter((act) => act.startsWith("restarted")).length;
  return [
    heals > shippedRhythm.max && `${fault}: ${heals} restarts`,
    fault.startsWith("postgres") &&
      gatewayReplaced &&
      `${fault}: the gateway was restarted for it`,
    raised.some((text) => text.startsWith("gateway-ready")) &&
      `${fault}: gateway-ready was blamed`,
  ].filter((mistake) => mistake !== false);
}

function table(rows: readonly FaultReport[]): string {
  const list = (texts: readonly string[]) =>
    texts.length === 0
      ? "–"
      : [...new Set(texts)].map((text) => times(text, texts)).join("; ");
  return [
    "| What went wrong | Noticed after | Done | Told | All well after |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map(({ fault, noticedMs, done, raised, wellAfterMs }) => {
      const told = raised
        .filter((text) => heard.includes(`raised: ${text}`))
        .map(withoutTime);
      return `| ${fault} | ${seconds(noticedMs)} | ${list(done)} | ${list(told)} | ${seconds(wellAfterMs)} |`;
    }),
  ].join("\n");
}

function times(text: string, all: readonly string[]): string {
  const count = all.filter((each) => each === text).length;
  return count === 1 ? text : `${text} (${count} times)`;
}

function withoutTime(text: string): string {
  return text.replace(/ since \d\d:\d\d:\d\d/, "");
}

function seconds(ms: number): string {
  return ms < 10_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.round(ms / 1000)} s`;
}
