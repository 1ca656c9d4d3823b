// The fault campaigns (npm run test:faults).
import { CAMPAIGNS, type CampaignName } from "./campaigns.ts";
import { isClean, ZEROS, type Verdict } from "./judge.ts";
import { createRandom } from "./random.ts";
import { startTestbedPostgres } from "./testbed.ts";
import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";

const names = Object.keys(CAMPAIGNS) as CampaignName[];
const USAGE = `Usage: npm run test:faults -- [options]
  --only NAME   run only this campaign (can be repeated): ${names.join(", ")}
  --rounds N    number of kills; other campaigns repeat in proportion (210)
  --minutes N   duration of the mixed campaign (30)
  --away N      seconds that Postgres and Redis are unavailable (30)
  --seed N      repeat the random choices of an earlier run, which logged its seed
  --json        print one JSON value on standard output
`;
const OPTIONS = {
  rounds: { type: "string", default: "210" },
  minutes: { type: "string", default: "30" },
  only: { type: "string", multiple: true },
  seed: { type: "string" },
  away: { type: "string", default: "30" },
  json: { type: "boolean", default: false },
} as const;
const { seed, rounds, minutes, away, only, json } = readCommandLine(
  USAGE,
  OPTIONS,
  ({ json, ...texts }) => ({
    seed:
      texts.seed === undefined
        ? Math.floor(Math.random() * 2 ** 31)
        : wholeNumberOf("seed", texts.seed, 0),
    rounds: wholeNumberOf("rounds", texts.rounds),
    minutes: numberOf("minutes", texts.minutes),
    away: numberOf("away", texts.away),
    only: texts.only?.map(campaignOf) ?? names,
    json,
  }),
);

const startedAt = Date.now();
const log = (line: string) =>
  void process.stderr.write(
    `${String(Math.round((Date.now() - startedAt) / 1_000)).padStart(5)} s  ${line}\n`,
  );
log(`seed ${seed}`);

const verdicts: Verdict[] = [];
const postgres = await startTestbedPostgres();
try {
  for (const name of names) {
    if (!only.includes(name)) {
      continue;
    }
    const verdict = await CAMPAIGNS[name](postgres, {
      random: createRandom(seed),
      rounds,
      minutes,
      outageMs: away * 1_000,
      expireLeases: false,
      log,
    });
    verdicts.push(verdict);
    if (!json) {
      print(verdict);
    }
  }
} finally {
  await postgres.remove();
}
const clean = verdicts.every(isClean);
if (json) {
  process.stdout.write(
    `${JSON.stringify({ seed, seconds: Math.round((Date.now() - startedAt) / 1_000), clean, verdicts }, null, 2)}\n`,
  );
}
process.exit(clean ? 0 : 1);

function campaignOf(text: string): CampaignName {
  const name = names.find((known) => known === text);
  if (name !== undefined) {
    return name;
  }
  throw new Error(`--only: ${text} is not one of ${names.join(", ")}.`);
}

function print(verdict: Verdict): void {
  const { campaign, details, ...numbers } = verdict;
  const lines = Object.entries(numbers).map(([name, value]) => {
    const words = name.replace(
      /[A-Z]/g,
      (letter) => ` ${letter.toLowerCase()}`,
    );
    const number = Number.isInteger(value) ? String(value) : value.toFixed(2);
    const bad = value !== 0 && (ZEROS as readonly string[]).includes(name);
    return `  ${words.padEnd(18)} ${number.padStart(8)}${bad ? "  <-- must be 0" : ""}`;
  });
  process.stdout.write(
    `${campaign}: ${isClean(verdict) ? "all zeros" : "FAILED"}\n${lines.join("\n")}\n`,
  );
  for (const detail of details) {
    process.stdout.write(`    ${detail}\n`);
  }
}
