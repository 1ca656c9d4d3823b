// Compares the gateway's token counting with gpt-tokenizer (npm run bench:tokens).
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { loadEncoding } from "../../gateway/tokens/byte-pairs.ts";
import { readCommandLine, wholeNumberOf } from "../../scripts/command-line.ts";
import { markdownTable, median } from "./comparison.ts";
import { describeMachine } from "./machine.ts";
import { TEXTS } from "./token-texts.ts";

const USAGE = `Usage: npm run bench:tokens -- [options]
  --rounds N  alternating runs of each candidate, of which the median is reported (9)
`;

const RUN_MS = 200;

const STARTS = {
  own: `const { loadEncoding } = await import(${JSON.stringify(new URL("../../gateway/tokens/byte-pairs.ts", import.meta.url).href)});
    (await loadEncoding("o200k_base"))("a text");`,
  "gpt-tokenizer": `const { countTokens } = await import(${JSON.stringify(import.meta.resolve("gpt-tokenizer/encoding/o200k_base"))});
    countTokens("a text");`,
};

/** Measures the time to load the encoding and its memory, in a separate process. */
async function start(
  name: keyof typeof STARTS,
): Promise<{ ms: number; mb: number }> {
  const program = `globalThis.gc(); const before = process.memoryUsage().rss; const at = performance.now();
    ${STARTS[name]}
    const ms = performance.now() - at; globalThis.gc();
    console.log(JSON.stringify({ ms, mb: (process.memoryUsage().rss - before) / 2 ** 20 }));`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", "--input-type=module", "--eval", program],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)) },
  );
  return JSON.parse(stdout) as { ms: number; mb: number };
}

const { rounds } = readCommandLine(
  USAGE,
  { rounds: { type: "string", default: "9" } } as const,
  (it) => ({ rounds: wholeNumberOf("rounds", it.rounds) }),
);
const own = await loadEncoding("o200k_base");
const candidates = {
  own,
  "gpt-tokenizer": (text: string) => countTokens(text),
};
const NAMES = ["own", "gpt-tokenizer"] as const;
let call = 0;

/** Measures the microseconds to count one text. */
function time(
  name: keyof typeof candidates,
  text: (call: number) => string,
): number {
  const texts = Array.from({ length: 500 }, () => text(call++));
  const count = candidates[name];
  let counted = 0;
  const until = performance.now() + RUN_MS;
  const at = performance.now();
  do {
    count(texts[counted++ % texts.length] ?? "");
  } while (counted < texts.length && performance.now() < until);
  return ((performance.now() - at) * 1_000) / counted;
}

const rows: string[][] = [];
const row = (
  what: string,
  values: Readonly<Record<keyof typeof candidates, number>>,
) => {
  const cells = NAMES.map((name) => values[name].toPrecision(3));
  rows.push([
    what,
    ...cells,
    (values["gpt-tokenizer"] / values.own).toFixed(2),
  ]);
};
for (const [what, text] of Object.entries(TEXTS)) {
  if (own(text(0)) !== countTokens(text(0))) {
    throw new Error(`The counts of "${what}" differ.`);
  }
  const times = { own: [] as number[], "gpt-tokenizer": [] as number[] };
  for (let round = 0; round < rounds; round++) {
    NAMES.forEach((name) => times[name].push(time(name, text)));
  }
  row(`${what}, µs`, {
    own: median(times.own),
    "gpt-tokenizer": median(times["gpt-tokenizer"]),
  });
}
const [ownStart, libraryStart] = [
  await start("own"),
  await start("gpt-tokenizer"),
];
row("loading o200k_base, ms", {
  own: ownStart.ms,
  "gpt-tokenizer": libraryStart.ms,
});
row("memory after loading, MB", {
  own: ownStart.mb,
  "gpt-tokenizer": libraryStart.mb,
});
const { cores, cpu, node, date } = describeMachine();
process.stdout.write(
  `${date}, ${cores} × ${cpu}, Node ${node}; median of ${rounds} alternating runs\n\n` +
    markdownTable(["", "own", "gpt-tokenizer", "ratio"], rows),
);
