import type { LedgerSize } from "./ledger-rows.ts";
import { readCommandLine, wholeNumberOf } from "../../scripts/command-line.ts";

/** Reads the command line of a benchmark of a generated ledger; `subject` is what it requests. */
export function readLedgerOptions(
  script: string,
  defaults: {
    readonly keys: number;
    readonly rounds: number;
    readonly subject: string;
  },
): { readonly size: LedgerSize; readonly rounds: number } {
  const usage = `Usage: npm run ${script} -- [options]
  --rows N     calls in the ledger (1000000)
  --keys N     keys that the calls were made with (${defaults.keys})
  --days N     days over which they are spread (60)
  --rounds N   requests of each ${defaults.subject} (${defaults.rounds})
`;
  const options = {
    rows: { type: "string", default: "1000000" },
    keys: { type: "string", default: String(defaults.keys) },
    days: { type: "string", default: "60" },
    rounds: { type: "string", default: String(defaults.rounds) },
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
