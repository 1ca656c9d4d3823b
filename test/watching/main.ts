// Injects faults into the embedded stack and reports how its supervisor handles them (npm run test:watching).
import { setTimeout as sleep } from "node:timers/promises";
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
  staysUnhealthy,
  type Fault,
  type FaultReport,
} from "./faults.ts";
import { openFaultTestbed, shippedTiming } from "./fault-testbed.ts";
import { readCommandLine } from "../../scripts/command-line.ts";

/** Alerts are sent only for faults that last half a minute, so lasting faults last this long. */
const ALERT_AFTER_MS = 45_000;

const FAULTS: readonly Fault[] = [
  ...["postgres", "notes", "echo", "gateway"].map(killed),
  hung("gateway", true),
  hung("notes", false),
  hung("postgres", false),
  answers500,
  slow,
  portTaken("gateway", ALERT_AFTER_MS),
  portTaken("postgres", ALERT_AFTER_MS),
  staysUnhealthy,
  diskFull,
];
const names = FAULTS.map(({ name }) => name);

const USAGE = `Usage: npm run test:watching -- [options]
  --every TIME   interval of the checks (${shippedTiming.every})
  --only NAME    run only this fault: ${names.join(", ")}
`;
const OPTIONS = {
  every: { type: "string", default: shippedTiming.every },
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

const testbed = await openFaultTestbed({ ...shippedTiming, every }, true);
const reports: FaultReport[] = [];
let messages: readonly string[] = [];
const wrong: string[] = [];
try {
  for (const fault of FAULTS) {
    if (only !== undefined && fault.name !== only) {
      continue;
    }
    if (fault === diskFull && !testbed.ownDisk) {
      process.stdout.write(
        "The full disk is skipped: mounting one is not permitted.\n",
      );
      continue;
    }
    const gatewayBefore = testbed.pidOf("gateway");
    const report = await runFault(testbed, fault);
    reports.push(report);
    process.stdout.write(`${inspect(report, { breakLength: 120 })}\n`);
    wrong.push(...mistakes(report, testbed.pidOf("gateway") !== gatewayBefore));
    // An operator's restart resets the limit of restarts.
    await testbed.restart("gateway");
  }
  await sleep(ALERT_AFTER_MS);
  messages = testbed.messages;
} finally {
  await testbed.close();
}
process.stdout.write(`\n${table(reports)}\n`);
for (const mistake of wrong) {
  process.stdout.write(`✕ ${mistake}\n`);
}
process.exitCode = wrong.length === 0 ? 0 : 1;

/** Reactions that are wrong for every fault. */
function mistakes(
  { fault, done, raised }: FaultReport,
  gatewayReplaced: boolean,
): readonly string[] {
  const heals = done.filter((act) => act.startsWith("restarted")).length;
  return [
    heals > shippedTiming.max && `${fault}: ${heals} restarts`,
    fault.startsWith("postgres") &&
      gatewayReplaced &&
      `${fault}: the gateway was restarted`,
    raised.some((text) => text.startsWith("gateway-ready")) &&
      `${fault}: gateway-ready was reported`,
  ].filter((mistake) => mistake !== false);
}

function table(rows: readonly FaultReport[]): string {
  const list = (texts: readonly string[]) =>
    texts.length === 0
      ? "–"
      : [...new Set(texts)].map((text) => times(text, texts)).join("; ");
  return [
    "| Fault | Detected after | Action | Alert | Healthy after |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map(({ fault, noticedMs, done, raised, healthyAfterMs }) => {
      const alerts = raised
        .filter((text) => messages.includes(`raised: ${text}`))
        .map(withoutTime);
      return `| ${fault} | ${seconds(noticedMs)} | ${list(done)} | ${list(alerts)} | ${seconds(healthyAfterMs)} |`;
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
