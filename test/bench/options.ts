import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";
import { LOADS, type Load } from "./load-requests.ts";
import { PEERS, type PeerName } from "./peers.ts";

export interface BenchOptions {
  readonly quick: boolean;
  /** Print one JSON value on standard output instead of tables. */
  readonly json: boolean;
  /** Write the results into docs/performance.md. */
  readonly write: boolean;
  readonly peer: { readonly name: PeerName; readonly directory: string } | null;
  readonly loads: readonly Load[];
  /** Connections of closed loops. */
  readonly concurrency: readonly number[];
  /** Plain calls per second of open loops. */
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly warmupSeconds: number;
}

const USAGE = `Usage: npm run bench -- [options]
  --quick              run for at most a minute
  --json               print one JSON value on standard output
  --write              write the results into docs/performance.md
  --peer portkey       also measure another gateway (without optional features)
  --peer-dir DIR       its directory: npm install --prefix DIR @portkey-ai/gateway
  --loads LIST         loads to run, of ${LOADS.join(",")}
  --concurrency LIST   connections of the closed loops (1,16,64,256)
  --rates LIST         plain calls per second of the open loops (250,500,1000,2000)
  --seconds N          measured time of each run (5)
  --warmup N           seconds of warm-up before it (1)
`;

const LONG = { rates: "250,500,1000,2000", seconds: "5", warmup: "1" };
const QUICK = { rates: "1000", seconds: "1", warmup: "0.3" };

const OPTIONS = {
  quick: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
  peer: { type: "string" },
  "peer-dir": { type: "string" },
  loads: { type: "string", default: LOADS.join(",") },
  concurrency: { type: "string", default: "1,16,64,256" },
  rates: { type: "string" },
  seconds: { type: "string" },
  warmup: { type: "string" },
} as const;

/** Reads the command line of `npm run bench`. */
export function readOptions(): BenchOptions {
  return readCommandLine(USAGE, OPTIONS, (values) => {
    const defaults = values.quick ? QUICK : LONG;
    return {
      quick: values.quick,
      json: values.json,
      write: values.write,
      peer: readPeer(values.peer, values["peer-dir"]),
      loads: listOf("loads", values.loads, (name) => loadOf("loads", name)),
      concurrency: listOf("concurrency", values.concurrency, (text) =>
        wholeNumberOf("concurrency", text),
      ),
      rates: listOf("rates", values.rates ?? defaults.rates, (text) =>
        numberOf("rates", text),
      ),
      seconds: numberOf("seconds", values.seconds ?? defaults.seconds),
      warmupSeconds: numberOf("warmup", values.warmup ?? defaults.warmup),
    };
  });
}

/** The load that an option names; throws if it is unknown. */
export function loadOf(option: string, name: string): Load {
  const load = LOADS.find((known) => known === name);
  if (load !== undefined) {
    return load;
  }
  throw new Error(`--${option}: ${name} is not one of ${LOADS.join(", ")}.`);
}

function readPeer(
  given: string | undefined,
  directory: string | undefined,
): BenchOptions["peer"] {
  if (given === undefined) {
    return null;
  }
  const name = PEERS.find((known) => known === given);
  if (name === undefined) {
    throw new Error(`--peer: ${given} is not one of ${PEERS.join(", ")}.`);
  }
  if (directory === undefined) {
    throw new Error(
      `--peer ${name} also needs --peer-dir, the directory in which it is installed.`,
    );
  }
  return { name, directory };
}

function listOf<T>(
  option: string,
  text: string,
  read: (item: string) => T,
): readonly T[] {
  const items = text.split(",").filter((item) => item !== "");
  if (items.length === 0) {
    throw new Error(`--${option}: the list is empty.`);
  }
  return items.map((item) => read(item.trim()));
}
