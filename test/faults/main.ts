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
  --only NAME   this campaign; given again, this one too: ${names.join(", ")}
  --rounds N    how often is killed; other campaigns repeat in proportion (210)
  --minutes N   how long the mix of all lasts (30)
  --away N      for how many seconds Postgres and Redis are away (30)
  --seed N      repeats the choices of a run, which tells its seed
  --json        one JSON value on standard output
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

const began = Date.now();
const say = (line: string) =>
  void process.stderr.write(
    `${String(Math.round((Date.now() - began) / 1_000)).padStart(5)} s  ${line}\n`,
  );
say(`seed ${seed}`);

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
      awayMs: away * 1_000,
      hurry: false,
      say,
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
    `${JSON.stringify({ seed, seconds: Math.round((Date.now() - began) / 1_000), clean, verdicts }, null, 2)}\n`,
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
    const spelt = name.replace(
      /[A-Z]/g,
      (letter) => ` ${letter.toLowerCase()}`,
    );
    const shown = Number.isInteger(value) ? String(value) : value.toFixed(2);
    const bad = value !== 0 && (ZEROS as readonly string[]).includes(name);
    return `  ${spelt.padEnd(18)} ${shown.padStart(8)}${bad ? "  <-- must be 0" : ""}`;
  });
  process.stdout.write(
    `${campaign}: ${isClean(verdict) ? "all zeros" : "FAILED"}\n${lines.join("\n")}\n`,
  );
  for (const detail of details) {
    process.stdout.write(`    ${detail}\n`);
  }
}
