// Breaks the embedded stack in every way there is and tells what its supervisor made of it:
// npm run test:watching -- [--every 30s] [--only "gateway hung"]
import { setTimeout as wait } from "node:timers/promises";
import { inspect, parseArgs } from "node:util";
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
} from "../test/watching/faults.ts";
import { openFaultStand, shippedRhythm } from "../test/watching/fault-stand.ts";

const { values } = parseArgs({
  options: {
    every: { type: "string", default: shippedRhythm.every },
    only: { type: "string" },
  },
});
/** What is over within half a minute is told to nobody, so that what lasts is given this long. */
const toldAfterMs = 45_000;

const faults: readonly Fault[] = [
  ...["postgres", "notes", "echo", "gateway"].map(killed),
  hung("gateway", true),
  hung("notes", false),
  hung("postgres", false),
  answers500,
  slow,
  portTaken("gateway", toldAfterMs),
  portTaken("postgres", toldAfterMs),
  staysSick,
  diskFull,
];

const stand = await openFaultStand(
  { ...shippedRhythm, every: values.every },
  true,
);
const reports: FaultReport[] = [];
let heard: readonly string[] = [];
const wrong: string[] = [];
try {
  for (const fault of faults) {
    if (values.only !== undefined && fault.name !== values.only) continue;
    if (fault === diskFull && !stand.ownDisk) {
      process.stdout.write(
        "The full disk is left out: it needs the right to mount one.\n",
      );
      continue;
    }
    const gatewayBefore = stand.pidOf("gateway");
    const report = await runFault(stand, fault);
    reports.push(report);
    process.stdout.write(`${inspect(report, { breakLength: 120 })}\n`);
    wrong.push(...mistakes(report, stand.pidOf("gateway") !== gatewayBefore));
    // An operator looks at each: budgets begin anew.
    await stand.restart("gateway");
  }
  await wait(toldAfterMs);
  heard = stand.messages;
} finally {
  await stand.close();
}
process.stdout.write(`\n${table(reports)}\n`);
for (const mistake of wrong) process.stdout.write(`✕ ${mistake}\n`);
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
