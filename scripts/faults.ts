// The fault campaigns: npm run test:faults -- [--rounds N] [--minutes N] [--away SECONDS] [--only NAME] [--seed N] [--json]
import { parseArgs } from "node:util";
import { CAMPAIGNS, type CampaignName } from "../test/faults/campaigns.ts";
import { isClean, ZEROS, type Verdict } from "../test/faults/judge.ts";
import { createRandom } from "../test/faults/random.ts";
import { startStandPostgres } from "../test/faults/stand.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "210" },
    minutes: { type: "string", default: "30" },
    only: { type: "string", multiple: true },
    seed: { type: "string" },
    away: { type: "string", default: "30" },
    json: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const rounds = Number(values.rounds);
const minutes = Number(values.minutes);
const away = Number(values.away);
const names = Object.keys(CAMPAIGNS) as CampaignName[];
const wrong =
  [seed, rounds].some((number) => !Number.isInteger(number) || number < 0) ||
  !(minutes >= 0 && away >= 0);
const unknown = values.only?.find((name) => !names.includes(name as never));
if (wrong || unknown !== undefined) {
  process.stderr.write(
    unknown === undefined
      ? "hearth: --rounds and --seed must be whole numbers, --minutes and --away (seconds) numbers, none below 0.\n"
      : `hearth: there is no campaign ${unknown}; there are: ${names.join(", ")}.\n`,
  );
  process.exit(2);
}

const began = Date.now();
const say = (line: string) =>
  void process.stderr.write(
    `${String(Math.round((Date.now() - began) / 1_000)).padStart(5)} s  ${line}\n`,
  );
say(`seed ${seed}`);

const verdicts: Verdict[] = [];
const postgres = await startStandPostgres();
try {
  for (const name of names) {
    if (values.only !== undefined && !values.only.includes(name)) continue;
    const verdict = await CAMPAIGNS[name](postgres, {
      random: createRandom(seed),
      rounds,
      minutes,
      awayMs: away * 1_000,
      hurry: false,
      say,
    });
    verdicts.push(verdict);
    if (!values.json) print(verdict);
  }
} finally {
  await postgres.remove();
}
const clean = verdicts.every(isClean);
if (values.json)
  process.stdout.write(
    `${JSON.stringify({ seed, seconds: Math.round((Date.now() - began) / 1_000), clean, verdicts }, null, 2)}\n`,
  );
process.exit(clean ? 0 : 1);

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
  for (const detail of details) process.stdout.write(`    ${detail}\n`);
}
