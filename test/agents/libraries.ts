import { join } from "node:path";
import { inProject } from "../../infra/project-files.ts";
import { commandsOf } from "../docs-commands.ts";
import { said } from "./coding-agents.ts";
import {
  PROGRAMS,
  runCommands,
  type Place,
  type ProgramRun,
} from "./program.ts";
import type { Script } from "./scripted-provider.ts";
import type { AgentTestbed } from "./testbed.ts";

const LIBRARIES = {
  "ai-sdk": "js",
  "langchain-js": "js",
  "langchain-python": "python",
  "openai-agents-js": "js",
  "openai-agents-python": "python",
} as const;
type Library = keyof typeof LIBRARIES;
export const LIBRARY_NAMES = Object.keys(LIBRARIES) as Library[];

interface LibraryOptions {
  readonly key: string;
  readonly alias: string;
  readonly until?: string;
}

const PAGE = "docs/clients.md";

/** Calls the only tool, and repeats its result. */
export const callsTool: Script = ({ toolNames: [name], toolResults }) => {
  if (toolResults.length > 0 || name === undefined) {
    return said(`It is ${toolResults.join(" and ")}.`);
  }
  const given = name === "weather" ? '{"city":"Bern"}' : "{}";
  const call = { id: "call_1", name, argumentPieces: [given] };
  return { thinking: null, text: [], calls: [call] };
};

/** Runs a library's code of docs/clients.md, as a file in the working directory. */
export function runLibrary(
  testbed: AgentTestbed,
  place: Place,
  library: Library,
  { key, alias }: LibraryOptions,
): Promise<ProgramRun> {
  const language = LIBRARIES[library];
  const [code = ""] = commandsOf(PAGE, library, language);
  const [file, command] =
    language === "js"
      ? ["example.mjs", "node example.mjs"]
      : ["example.py", "python3 example.py"];
  return runCommands(testbed, place, `cd ../work && ${command}`, {
    key,
    files: { [`../work/${file}`]: code.replaceAll("claude-sonnet", alias) },
    ...(language === "js" ? { modules: modulesOf(library) } : {}),
  });
}

function modulesOf(library: Library): string {
  return library === "ai-sdk"
    ? inProject("node_modules")
    : join(PROGRAMS, "npm/node_modules");
}

export function runLlm(
  testbed: AgentTestbed,
  place: Place,
  { key, alias }: LibraryOptions,
): Promise<ProgramRun> {
  const [models = ""] = commandsOf(PAGE, "llm", "yaml");
  const [commands = ""] = commandsOf(PAGE, "llm");
  return runCommands(testbed, place, commands, {
    key,
    files: {
      ".config/io.datasette.llm/extra-openai-models.yaml": models.replace(
        "claude-sonnet",
        alias,
      ),
    },
  });
}

export function runAider(
  testbed: AgentTestbed,
  place: Place,
  { key, alias, until }: LibraryOptions,
): Promise<ProgramRun> {
  const [commands = ""] = commandsOf(PAGE, "aider");
  return runCommands(testbed, place, commands.replace("claude-sonnet", alias), {
    key,
    files: {
      // Its table of models, as an earlier start has downloaded it.
      ".aider/caches/model_prices_and_context_window.json": `{"other": {}}`,
    },
    ...(until === undefined ? {} : { until }),
  });
}
