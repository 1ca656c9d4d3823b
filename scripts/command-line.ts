import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

type Values<T extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T }>
>["values"];

/**
 * Reads a program's options. `--help` prints the usage and exits. A mistake, including an error thrown by `read`, prints one
 * sentence and the usage, and exits with code 2.
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

/** The first line of Node's explanation, with a full stop. */
function sentenceOf({ message }: Error): string {
  const [first = ""] = message.split("\n");
  return first.endsWith(".") ? first : `${first}.`;
}

/** Value of an option as a number above 0; throws one sentence. */
export function numberOf(option: string, text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) {
    return value;
  }
  throw new Error(`--${option}: ${text} is not a number above 0.`);
}

/** Value of an option as a whole number; throws one sentence. */
export function wholeNumberOf(option: string, text: string, min = 1): number {
  const value = text.trim() === "" ? NaN : Number(text);
  if (Number.isInteger(value) && value >= min) {
    return value;
  }
  throw new Error(`--${option}: ${text} is not a whole number from ${min}.`);
}
