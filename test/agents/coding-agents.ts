import { writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type {
  ModelReply,
  ModelRequest,
} from "../clients/formats/mock-model.ts";
import { commandsOf } from "../docs-commands.ts";
import type { Scripted } from "./scripted-provider.ts";
import { runCommands, type Place, type ProgramRun } from "./program.ts";
import type { AgentTestbed } from "./testbed.ts";

export const CODING_AGENTS = ["claude-code", "codex", "opencode"] as const;
export type CodingAgent = (typeof CODING_AGENTS)[number];

const PAGE = "docs/clients.md";
export const GREETING = "Hello from the model\n";

export interface AgentOptions {
  readonly key: string;
  readonly alias: string;
  /** Reports an error at once: by default the program retries as documented. */
  readonly withoutRetries?: true;
  /** Instead of a WebSocket: Codex changes to HTTP by itself before it reports some errors, after a while. */
  readonly overHttp?: true;
}

/** Runs a coding agent by the commands of docs/clients.md. */
export async function runAgent(
  testbed: AgentTestbed,
  place: Place,
  agent: CodingAgent,
  { key, alias, withoutRetries, overHttp }: AgentOptions,
): Promise<ProgramRun> {
  const [commands = ""] = commandsOf(PAGE, agent);
  switch (agent) {
    case "claude-code":
      return runCommands(
        testbed,
        place,
        commands.replaceAll("claude-sonnet", alias),
        {
          key,
          env: withoutRetries ? { CLAUDE_CODE_MAX_RETRIES: "0" } : {},
        },
      );
    case "codex": {
      const [config = ""] = commandsOf(PAGE, agent, "toml");
      const retries = withoutRetries ? "_max_retries = 0" : "$&";
      return runCommands(testbed, place, commands, {
        key,
        files: {
          ".codex/config.toml": config
            .replaceAll("gpt-mini", alias)
            .replaceAll(/_max_retries = \d+/g, retries)
            .replace(/^supports_websockets = .*$/m, overHttp ? "" : "$&"),
        },
      });
    }
    case "opencode": {
      const [config = ""] = commandsOf(PAGE, agent, "json");
      installedPlugins(place);
      return runCommands(
        testbed,
        place,
        commands.replaceAll("claude-sonnet", alias),
        { key, files: { ".config/opencode/opencode.json": config } },
      );
    }
    default:
      return agent satisfies never;
  }
}

/** OpenCode's first start installs its plugins from npm, which no test may reach: as if an earlier start had. */
function installedPlugins({ home }: Place): void {
  const directory = join(home, ".config/opencode");
  mkdirSync(join(directory, "node_modules"), { recursive: true });
  const dependencies = { "@opencode-ai/plugin": "*" };
  writeFileSync(
    join(directory, "package-lock.json"),
    JSON.stringify({ packages: { "": { dependencies } } }),
  );
}

/** A turn with one tool: the model writes the file with the agent's own tool, and then says that it has. */
export function writesFile({
  work,
}: Place): (request: ModelRequest) => Scripted {
  return ({ toolNames, toolResults }) => {
    if (toolResults.length > 0) {
      return said("The greeting is written.");
    }
    const call = editCall(toolNames, join(work, "hello.txt"));
    return call === null
      ? said("A greeting")
      : { thinking: null, text: ["I write the file."], calls: [call] };
  };
}

export function said(text: string): Scripted {
  return { thinking: null, text: [text], calls: [] };
}

/** The call of the tool with which an agent writes files; null for a request without one, such as that for a title. */
function editCall(
  toolNames: readonly string[],
  path: string,
): ModelReply["calls"][number] | null {
  const calls: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    Write: { file_path: path, content: GREETING },
    exec_command: { cmd: `printf '${GREETING.trim()}\\n' > hello.txt` },
    write: { filePath: path, content: GREETING },
    apply_patch: {
      patchText: `*** Begin Patch\n*** Add File: hello.txt\n+${GREETING.trim()}\n*** End Patch`,
    },
  };
  const name = Object.keys(calls).find((known) => toolNames.includes(known));
  if (name === undefined) {
    return null;
  }
  const json = JSON.stringify(calls[name]);
  return {
    id: "call_1",
    name,
    argumentPieces: [json.slice(0, 9), json.slice(9)],
  };
}
