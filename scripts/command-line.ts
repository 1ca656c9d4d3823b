import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

type Values<T extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T }>
>["values"];

/**
 * Makes what a program needs of its options. `--help` prints the usage and ends; so does a mistake, also one that `read`
 * throws, with a sentence above it and exit code 2.
 */
export function readCommandLine<T extends ParseArgsOptionsConfig, Read>(
  usage: string,
  options: T,
  read: (values: Values<T>) => Read,
): Read {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(usage);
    process.exit(0);
  }
  try {
    return read(parseArgs({ args, options }).values);
  } catch (error) {
    process.stderr.write(`hearth: ${sentenceOf(error as Error)}\n${usage}`);
    process.exit(2);
  }
}

/** Node explains some mistakes in further lines, and ends without a full stop. */
function sentenceOf({ message }: Error): string {
  const [first = ""] = message.split("\n");
  return first.endsWith(".") ? first : `${first}.`;
}

/** The number above 0 that an option holds; throws one sentence. */
export function numberOf(option: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) {
    return value;
  }
  throw new Error(`--${option}: ${text} is not a number above 0.`);
}

/** The whole number that an option holds; throws one sentence. */
export function wholeNumberOf(option: string, text: string, least = 1): number {
  const value = text.trim() === "" ? NaN : Number(text);
  if (Number.isInteger(value) && value >= least) {
    return value;
  }
  throw new Error(`--${option}: ${text} is not a whole number from ${least}.`);
}
