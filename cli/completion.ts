import { RootCommand, script, type Command } from "@bomb.sh/tab";
import { unknownName } from "../core/config/problem.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { listModels } from "../supervisor/gateway/first-call.ts";
import { listTeamNames, listUserNames } from "../supervisor/gateway/owners.ts";
import { listKeyAliases } from "./find-key.ts";
import { findGateway } from "./gateway-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError, type Verb } from "./verb.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

export const completion = defineVerb({
  name: "completion",
  description: "Print the completion script of a shell: bash, zsh or fish.",
  example: "hearth completion bash >> ~/.bashrc",
  args: {
    shell: {
      type: "positional",
      required: true,
      description: SHELLS.join(", "),
    },
    ...jsonArg,
  },
  run: async ({ shell, json }) => {
    if (!SHELLS.some((known) => known === shell)) {
      throw new UsageError(`${unknownName("shell", shell, SHELLS)}.`);
    }
    const text = scriptOf(shell);
    printAnswer(json, { shell, script: text }, text);
    return 0;
  },
});

/** The library only prints scripts. */
function scriptOf(shell: string): string {
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => lines.push(line);
  try {
    script(shell, "hearth", "hearth");
  } finally {
    console.log = log;
  }
  return lines.join("\n");
}

/** Names for positional arguments of commands, read from the gateway running here. */
const NAMES: Readonly<
  Record<string, (gateway: AdminApi) => Promise<readonly string[]>>
> = {
  key: listKeyAliases,
  user: listUserNames,
  team: listTeamNames,
  model: async (gateway) => (await listModels(gateway)).map(({ id }) => id),
};

/** Answers the completion script: the commands, options and names that can follow these words. */
export async function completeWords(
  hearth: Verb,
  words: readonly string[],
): Promise<void> {
  const root = new RootCommand();
  const typed = words.slice(0, -1).filter((word) => !word.startsWith("-"));
  await addVerbs(root, hearth, "", typed);
  root.parse([...words]);
}

/** Adds the commands of a group; options and names only of the one that is being typed. */
async function addVerbs(
  root: RootCommand,
  group: Verb,
  path: string,
  typed: readonly string[],
): Promise<void> {
  for (const [word, load] of Object.entries(group.verbs ?? {})) {
    const verb = await load();
    const name = path === "" ? word : `${path} ${word}`;
    const command = root.command(name, verb.description);
    if (typed[0] === word) {
      await addArguments(command, verb);
      await addVerbs(root, verb, name, typed.slice(1));
    }
  }
}

async function addArguments(
  command: Command,
  { args = {} }: Verb,
): Promise<void> {
  for (const [name, { type, description = "" }] of Object.entries(args)) {
    if (type === "positional") {
      const names = await namesFor(name);
      command.argument(name, (complete) =>
        names.forEach((each) => complete(each, "")),
      );
    } else if (type === "boolean") {
      command.option(name, description);
    } else {
      // A handler without suggestions: the option has a value.
      command.option(name, description, () => undefined);
    }
  }
}

/** None without a gateway: a completion has no place for errors. */
async function namesFor(argument: string): Promise<readonly string[]> {
  try {
    return (await NAMES[argument]?.(findGateway(undefined))) ?? [];
  } catch {
    return [];
  }
}
