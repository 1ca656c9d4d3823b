import { nearest } from "../../core/nearest.ts";
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
  /** Other gateways to measure in the same run. */
  readonly peers: readonly PeerName[];
  readonly loads: readonly Load[];
  /** Connections of closed loops. */
  readonly concurrency: readonly number[];
  /** Plain calls per second of open loops. */
  readonly rates: readonly number[];
  /** Bounds of the tail, in ms, for which the highest rate is searched. */
  readonly frontier: readonly number[];
  readonly seconds: number;
  readonly warmupSeconds: number;
}

const USAGE = `Usage: npm run bench -- [options]
  --quick              run for at most a minute
  --json               print one JSON value on standard output
  --write              write the results and their chart into docs/performance.md
  --peer LIST          also measure other gateways, of ${PEERS.join(",")}: scripts/toolchain.sh peers installs them
  --loads LIST         loads to run, of ${LOADS.join(",")}
  --concurrency LIST   connections of the closed loops (1,16,64,256)
  --rates LIST         plain calls per second of the open loops (250,500,1000,2000)
  --frontier LIST      bounds of p99 in ms for which the highest rate is searched (1,5,10,50,100; none with --quick)
  --seconds N          measured time of each run (5)
  --warmup N           seconds of warm-up before it (1)
`;

const LONG = {
  rates: "250,500,1000,2000",
  frontier: "1,5,10,50,100",
  seconds: "5",
  warmup: "1",
};
const QUICK = { rates: "1000", frontier: null, seconds: "1", warmup: "0.3" };

const OPTIONS = {
  quick: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
  peer: { type: "string", multiple: true },
  loads: { type: "string", default: LOADS.join(",") },
  concurrency: { type: "string", default: "1,16,64,256" },
  rates: { type: "string" },
  frontier: { type: "string" },
  seconds: { type: "string" },
  warmup: { type: "string" },
} as const;

/** Reads the command line of `npm run bench`. */
export function readOptions(): BenchOptions {
  return readCommandLine(USAGE, OPTIONS, (values) => {
    const defaults = values.quick ? QUICK : LONG;
    const frontier = values.frontier ?? defaults.frontier;
    const peers = values.peer?.join(",");
    return {
      quick: values.quick,
      json: values.json,
      write: values.write,
      peers:
        peers === undefined
          ? []
          : [
              ...new Set(
                listOf("peer", peers, (name) => choiceOf("peer", name, PEERS)),
              ),
            ],
      loads: listOf("loads", values.loads, (name) => loadOf("loads", name)),
      concurrency: listOf("concurrency", values.concurrency, (text) =>
        wholeNumberOf("concurrency", text),
      ),
      rates: listOf("rates", values.rates ?? defaults.rates, (text) =>
        numberOf("rates", text),
      ),
      frontier:
        frontier === null
          ? []
          : listOf("frontier", frontier, (text) => numberOf("frontier", text)),
      seconds: numberOf("seconds", values.seconds ?? defaults.seconds),
      warmupSeconds: numberOf("warmup", values.warmup ?? defaults.warmup),
    };
  });
}

/** The load that an option names; throws if it is unknown. */
export function loadOf(option: string, name: string): Load {
  return choiceOf(option, name, LOADS);
}

function choiceOf<Choice extends string>(
  option: string,
  name: string,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((known) => known === name);
  if (choice !== undefined) {
    return choice;
  }
  const meant = nearest(name, choices);
  throw new Error(
    `--${option}: ${name} is not one of ${choices.join(", ")}${meant === undefined ? "" : ` (did you mean ${meant}?)`}.`,
  );
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
