import type { LedgerSize } from "./ledger-rows.ts";
import { readCommandLine, wholeNumberOf } from "../../scripts/command-line.ts";

/** Reads the command line of a benchmark that asks a generated ledger; `asked` is what it asks for. */
export function readLedgerOptions(
  script: string,
  usual: {
    readonly keys: number;
    readonly rounds: number;
    readonly asked: string;
  },
): { readonly size: LedgerSize; readonly rounds: number } {
  const usage = `Usage: npm run ${script} -- [options]
  --rows N     calls in the ledger (1000000)
  --keys N     keys that made them (${usual.keys})
  --days N     days over which they are spread (60)
  --rounds N   how often each ${usual.asked} is asked for (${usual.rounds})
`;
  const options = {
    rows: { type: "string", default: "1000000" },
    keys: { type: "string", default: String(usual.keys) },
    days: { type: "string", default: "60" },
    rounds: { type: "string", default: String(usual.rounds) },
  } as const;
  return readCommandLine(usage, options, ({ rounds, rows, keys, days }) => ({
    size: {
      rows: wholeNumberOf("rows", rows),
      keys: wholeNumberOf("keys", keys),
      days: wholeNumberOf("days", days),
    },
    rounds: wholeNumberOf("rounds", rounds),
  }));
}
