import {
  renderUsage,
  runCommand,
  type ArgsDef,
  type CommandDef,
  type ParsedArgs,
} from "citty";
import { nearest } from "../core/nearest.ts";
import { stripVTControlCharacters } from "node:util";
import { print, widthOf } from "./terminal.ts";

/** 0: all is well; 1: something is down or went wrong; 2: the command was not understood. */
export type ExitCode = 0 | 1 | 2;

export interface Verb {
  readonly name: string;
  readonly description: string;
  readonly example: string;
  readonly verbs?: Readonly<Record<string, () => Promise<Verb>>>;
  readonly args?: ArgsDef;
  readonly command?: CommandDef;
  /** Answers these words by itself, before anything of them is read; undefined leaves them to the verb. */
  readonly takeOver?: (words: readonly string[]) => ExitCode | undefined;
}

/** One verb of the CLI: what it takes, an example, and what it does. */
export function defineVerb<const T extends ArgsDef>(definition: {
  readonly name: string;
  readonly description: string;
  readonly example: string;
  readonly args: T;
  readonly run: (args: ParsedArgs<T>) => Promise<ExitCode>;
}): Verb {
  const { name, description, example, args, run } = definition;
  return {
    name,
    description,
    example,
    args,
    command: {
      meta: { name: `hearth ${name}`, description },
      args,
      run: ({ args: parsed }) => run(parsed as ParsedArgs<T>),
    },
  };
}

/** A mistake in the command line. */
export class UsageError extends Error {}

/** Finds the verb that the words name and runs it with the rest. */
export async function runVerb(
  verb: Verb,
  words: readonly string[],
): Promise<ExitCode> {
  if (verb.verbs !== undefined) {
    return runGroup(verb, verb.verbs, words);
  }
  const taken = verb.takeOver?.(words);
  if (taken !== undefined) {
    return taken;
  }
  if (verb.command === undefined || verb.args === undefined) {
    return 2;
  }
  if (asksForHelp(words)) {
    await printHelp(verb, verb.command);
    return 0;
  }
  checkWords(verb, verb.args, words);
  const { result } = await runCommand(verb.command, { rawArgs: [...words] });
  return result === 1 || result === 2 ? result : 0;
}

async function runGroup(
  group: Verb,
  verbs: NonNullable<Verb["verbs"]>,
  words: readonly string[],
): Promise<ExitCode> {
  const [first, ...rest] = words;
  if (first === undefined || asksForHelp([first]) || first === "help") {
    await printGroup(group, verbs);
    return first === undefined ? 2 : 0;
  }
  const load = Object.hasOwn(verbs, first) ? verbs[first] : undefined;
  if (load !== undefined) {
    return runVerb(await load(), rest);
  }
  const prefix = group.name === "" ? "hearth" : `hearth ${group.name}`;
  const near = nearest(first, Object.keys(verbs));
  throw new UsageError(
    first.startsWith("-")
      ? `${prefix} has no option ${first}: \`${prefix} --help\` lists what there is.`
      : `there is no command \`${prefix} ${first}\`${near === undefined ? "" : `, did you mean \`${prefix} ${near}\`?`}${near === undefined ? `: \`${prefix} --help\` lists them.` : ""}`,
  );
}

function asksForHelp(words: readonly string[]): boolean {
  return words.includes("--help") || words.includes("-h");
}

/** citty lets unknown options pass; a mistyped one must not be silently ignored. */
function checkWords(verb: Verb, args: ArgsDef, words: readonly string[]): void {
  const options = Object.entries(args).filter(
    ([, arg]) => arg.type !== "positional",
  );
  const positionals = Object.entries(args).filter(
    ([, arg]) => arg.type === "positional",
  );
  const known = new Map(
    options.flatMap(([name, arg]) => [
      [`--${name}`, arg] as const,
      ...(arg.type === "boolean" ? [[`--no-${name}`, arg] as const] : []),
      ...[("alias" in arg ? arg.alias : undefined) ?? []]
        .flat()
        .map(
          (alias) =>
            [alias.length === 1 ? `-${alias}` : `--${alias}`, arg] as const,
        ),
    ]),
  );
  let given = 0;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (!word.startsWith("-") || word === "-") {
      given += 1;
      if (given > positionals.length) {
        throw new UsageError(
          `\`hearth ${verb.name}\` does not know what to do with "${word}": \`hearth ${verb.name} --help\` shows what it takes.`,
        );
      }
      continue;
    }
    const [option = "", value] = word.split("=", 2);
    const arg = known.get(option);
    if (arg === undefined) {
      const near = nearest(option, [...known.keys()]);
      throw new UsageError(
        `\`hearth ${verb.name}\` has no option ${option}${near === undefined ? `: \`hearth ${verb.name} --help\` lists them.` : `, did you mean ${near}?`}`,
      );
    }
    if (arg.type === "boolean") {
      continue;
    }
    if (value === undefined) {
      at += 1;
    }
    if (value === "" || (value === undefined && words[at] === undefined)) {
      throw new UsageError(`${option} needs a value: ${verb.example}`);
    }
  }
  const missing = positionals.find(
    ([, arg], index) => arg.required === true && index >= given,
  );
  if (missing !== undefined) {
    throw new UsageError(
      `\`hearth ${verb.name}\` needs a ${missing[0]}, for example: ${verb.example}`,
    );
  }
}

async function printHelp(verb: Verb, command: CommandDef): Promise<void> {
  const usage = await renderUsage(command);
  print(plain(usage.replaceAll("`", "")).trim());
  print(`\nEXAMPLE\n\n  ${verb.example}\n`);
}

async function printGroup(
  group: Verb,
  verbs: NonNullable<Verb["verbs"]>,
): Promise<void> {
  const loaded = await Promise.all(
    Object.entries(verbs).map(async ([name, load]) => ({
      name,
      verb: await load(),
    })),
  );
  const prefix = group.name === "" ? "hearth" : `hearth ${group.name}`;
  const wide = Math.max(...loaded.map(({ name }) => name.length));
  print(`${group.description}\n`);
  for (const { name, verb } of loaded) {
    print(`  ${prefix} ${name.padEnd(wide)}  ${verb.description}`);
  }
  print(`\nEach has --help with an example; this one: ${group.example}`);
}

/** citty colours by its own rules; ours is that a pipe and NO_COLOR get plain text. */
function plain(text: string): string {
  return widthOf() === Infinity || process.env["NO_COLOR"]
    ? stripVTControlCharacters(text)
    : text;
}
