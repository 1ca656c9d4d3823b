import {
  renderUsage,
  runCommand,
  type ArgsDef,
  type CommandDef,
  type ParsedArgs,
} from "citty";
import { unknownName } from "../core/config/problem.ts";
import { Failure, textOf } from "../core/failure.ts";
import { stripVTControlCharacters } from "node:util";
import { namingOption } from "./name-option.ts";
import { foldLine, print } from "./terminal.ts";

/** 0: success, everything is healthy; 1: something is down or failed; 2: usage error. */
export type ExitCode = 0 | 1 | 2;

/** Commands by their words. */
export type Verbs = Readonly<Record<string, () => Promise<Verb>>>;

export interface Verb {
  readonly name: string;
  readonly description: string;
  readonly example: string;
  readonly verbs?: Verbs;
  /** The same by headings of the help; without it the help is one list. */
  readonly sections?: Readonly<Record<string, Verbs>>;
  readonly args?: ArgsDef;
  readonly command?: CommandDef;
  /** Handles these words before they are parsed; undefined leaves them to the verb. */
  readonly takeOver?: (words: readonly string[]) => ExitCode | undefined;
}

/** The option of every command: prints what it displays or did for programs. */
export const jsonArg = {
  json: { type: "boolean", description: "Print it as JSON" },
} as const;

/** Every command has `--json`; its description may differ. */
type VerbArgs = ArgsDef & { readonly json: { readonly type: "boolean" } };

/** One command of the CLI: its arguments, an example, and its implementation. */
export function defineVerb<const T extends VerbArgs>(definition: {
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
export class UsageError extends Failure {}

/** Finds the command named by the words and runs it with the remaining ones. */
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
  checkWords(verb, words);
  try {
    const { result } = await runCommand(verb.command, { rawArgs: [...words] });
    return result === 1 || result === 2 ? result : 0;
  } catch (error) {
    const named = namingOption(error, verb.args);
    throw named === error ? error : new UsageError(textOf(named));
  }
}

async function runGroup(
  group: Verb,
  verbs: Verbs,
  words: readonly string[],
): Promise<ExitCode> {
  const [first, ...rest] = words;
  if (first === "help" && rest.length > 0) {
    return runGroup(group, verbs, [...rest, "--help"]);
  }
  if (first === undefined || asksForHelp([first]) || first === "help") {
    await printGroup(group, verbs);
    return first === undefined ? 2 : 0;
  }
  const load = Object.hasOwn(verbs, first) ? verbs[first] : undefined;
  if (load !== undefined) {
    return runVerb(await load(), rest);
  }
  const prefix = group.name === "" ? "hearth" : `hearth ${group.name}`;
  throw new UsageError(
    `${first.startsWith("-") ? `unknown option "${first}"` : unknownCommand(first, Object.keys(verbs))}. Run \`${prefix} --help\` for all commands.`,
  );
}

/** Words that other programs have for the same command. */
const SAME_COMMANDS: readonly (readonly string[])[] = [
  ["new", "add", "create", "generate"],
  ["delete", "remove", "rm", "del"],
  ["list", "ls"],
  ["show", "info", "get", "view", "describe"],
  ["update", "set", "edit", "change"],
  ["up", "start"],
  ["down", "stop"],
  ["status", "ps"],
  ["report", "spend", "usage"],
  ["doctor", "diagnose"],
];

function unknownCommand(word: string, known: readonly string[]): string {
  const same = SAME_COMMANDS.find((words) => words.includes(word))?.find(
    (each) => known.includes(each),
  );
  return same === undefined
    ? unknownName("command", word, known)
    : `unknown command "${word}" (did you mean "${same}"?)`;
}

function asksForHelp(words: readonly string[]): boolean {
  return words.includes("--help") || words.includes("-h");
}

/** Throws a UsageError for words that the verb does not accept: citty ignores unknown options, and the first of two. */
export function checkWords(verb: Verb, words: readonly string[]): void {
  const { args = {} } = verb;
  const positionals = Object.entries(args).filter(
    ([, arg]) => arg.type === "positional",
  );
  const known = optionsOf(args);
  const fail = (problem: string): never => {
    throw new UsageError(
      `${problem}. Run \`hearth ${verb.name} --help\` for details.`,
    );
  };
  const given = new Set<string>();
  let values = 0;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (!word.startsWith("-") || word === "-") {
      const [name] =
        positionals[values] ?? fail(`unexpected argument "${word}"`);
      values += 1;
      if (word === "") {
        throw new UsageError(
          `${name} must not be empty, for example: ${verb.example}`,
        );
      }
      continue;
    }
    const [typed = "", value] = word.split("=", 2);
    const option = known.get(typed);
    if (option === undefined) {
      return fail(unknownName("option", typed, [...known.keys()]));
    }
    if (given.has(option.name)) {
      fail(`--${option.name} is given twice; give it once`);
    }
    given.add(option.name);
    if (!option.hasValue) {
      if (value !== undefined) {
        fail(`${typed} takes no value, not "${value}"`);
      }
      continue;
    }
    if (value === undefined) {
      at += 1;
    }
    if ((value ?? words[at] ?? "") === "") {
      fail(`${typed} requires a value: ${typed} <${option.valueHint}>`);
    }
  }
  const missing = positionals.find(
    ([, arg], index) => arg.required === true && index >= values,
  );
  if (missing !== undefined) {
    throw new UsageError(
      `${missing[0]} is required, for example: ${verb.example}`,
    );
  }
}

interface Option {
  readonly name: string;
  readonly hasValue: boolean;
  readonly valueHint: string;
}

/** The options of a verb by each spelling: `--lines` and `-n`; `--no-echo` only where `--echo` is the default. */
function optionsOf(args: ArgsDef): ReadonlyMap<string, Option> {
  return new Map(
    Object.entries(args)
      .filter(([, { type }]) => type !== "positional")
      .flatMap(([name, arg]) => {
        const hasValue = arg.type !== "boolean";
        const aliases = [("alias" in arg ? arg.alias : undefined) ?? []].flat();
        const { valueHint = "value" } = arg;
        return [
          `--${name}`,
          ...(!hasValue && arg.default === true ? [`--no-${name}`] : []),
          ...aliases.map((each) => `${each.length === 1 ? "-" : "--"}${each}`),
        ].map((spelling) => [spelling, { name, hasValue, valueHint }] as const);
      }),
  );
}

async function printHelp(verb: Verb, command: CommandDef): Promise<void> {
  const usage = stripVTControlCharacters(await renderUsage(command));
  for (const line of usage.replaceAll("`", "").trim().split("\n")) {
    print(foldLine(line.trimEnd()));
  }
  print(`\nEXAMPLE\n\n  ${verb.example}\n`);
}

async function printGroup(group: Verb, verbs: Verbs): Promise<void> {
  const prefix = group.name === "" ? "hearth" : `hearth ${group.name}`;
  const wide = Math.max(...Object.keys(verbs).map((name) => name.length));
  print(`${group.description}\n`);
  for (const [heading, members] of Object.entries(
    group.sections ?? { "": verbs },
  )) {
    if (heading !== "") {
      print(`${heading}:`);
    }
    for (const [name, load] of Object.entries(members)) {
      const { description } = await load();
      print(foldLine(`  ${prefix} ${name.padEnd(wide)}  ${description}`));
    }
    print("");
  }
  print(
    foldLine(
      `Run \`${prefix} COMMAND --help\` for details. Example: ${group.example}`,
    ),
  );
}
