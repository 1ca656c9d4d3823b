import { writeFileSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import type {
  ModelReply,
  ModelRequest,
} from "../clients/formats/mock-model.ts";
import { commandsOf } from "../docs-commands.ts";
import type { Scripted } from "./scripted-provider.ts";
import { runCommands, type Place, type ProgramRun } from "./program.ts";
import type { AgentTestbed } from "./testbed.ts";

export const CODING_AGENTS = [
  "claude-code",
  "codex",
  "gemini-cli",
  "opencode",
] as const;
type CodingAgent = (typeof CODING_AGENTS)[number];

const PAGE = "docs/clients.md";
export const GREETING = "Hello from the model\n";

interface AgentOptions {
  readonly key: string;
  readonly alias: string;
  /** Instead of a WebSocket: Codex changes to HTTP by itself before it reports some errors, after a while. */
  readonly overHttp?: boolean;
  /** Reports an error at once: by default the program retries as documented. OpenCode cannot be told to. */
  readonly withoutRetries?: boolean;
  readonly until?: string;
  /** In a terminal, as someone uses it who does not script it. Only OpenCode. */
  readonly terminal?: boolean;
}

/** Runs a coding agent by the commands of docs/clients.md. */
export async function runAgent(
  testbed: AgentTestbed,
  place: Place,
  agent: CodingAgent,
  { key, alias, withoutRetries, overHttp, until, terminal }: AgentOptions,
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
    case "gemini-cli": {
      const [config = ""] = commandsOf(PAGE, agent, "json");
      return runCommands(
        testbed,
        place,
        commands.replaceAll("claude-sonnet", alias),
        {
          key,
          files: {
            ".gemini/settings.json": withoutRetries
              ? config.replace('"general": {', '$& "maxAttempts": 1,')
              : config,
          },
        },
      );
    }
    case "opencode": {
      const [config = ""] = commandsOf(PAGE, agent, "json");
      installedPlugins(place);
      return runCommands(
        testbed,
        place,
        (terminal ? inTerminal(commands) : commands).replaceAll(
          "claude-sonnet",
          alias,
        ),
        {
          key,
          files: { ".config/opencode/opencode.json": config },
          ...(until === undefined ? {} : { until }),
          ...(terminal === undefined ? {} : { terminal }),
        },
      );
    }
    default:
      return agent satisfies never;
  }
}

function inTerminal(commands: string): string {
  return commands
    .replace("opencode run", "opencode")
    .replace('"Write', '--prompt "Write');
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
    return edit(toolNames, join(work, "hello.txt"), GREETING, 1);
  };
}

/** A session of many turns, each with one more file: `file-1.txt` to `file-COUNT.txt`. */
export function writesFiles(
  { work }: Place,
  count: number,
): (request: ModelRequest, body: string) => Scripted {
  return ({ toolNames }, body) => {
    // By the conversation, so that a repeated request gets the same answer.
    const written = Math.max(
      0,
      ...[...body.matchAll(/"call_(\d+)"/g)].map(([, turn]) => Number(turn)),
    );
    const next = written + 1;
    return written === count
      ? said(`All ${count} files are written.`)
      : edit(toolNames, join(work, `file-${next}.txt`), textOf(next), next);
  };
}

/** What the model writes into a file of a long session. */
export function textOf(file: number): string {
  return `${`This is line ${file} of the story. `.repeat(20).trim()}\n`;
}

function edit(
  toolNames: readonly string[],
  path: string,
  content: string,
  turn: number,
): Scripted {
  const call = editCall(toolNames, path, content, turn);
  return call === null
    ? said("A greeting")
    : { thinking: null, text: ["I write the file."], calls: [call] };
}

export function said(text: string): Scripted {
  return { thinking: null, text: [text], calls: [] };
}

/** The call of the tool with which an agent writes files; null for a request without one, such as that for a title. */
function editCall(
  toolNames: readonly string[],
  path: string,
  content: string,
  turn: number,
): ModelReply["calls"][number] | null {
  const file = basename(path);
  const calls: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    Write: { file_path: path, content },
    exec_command: { cmd: `printf '${content.trim()}\\n' > ${file}` },
    write: { filePath: path, content },
    write_file: { file_path: path, content },
    apply_patch: {
      patchText: `*** Begin Patch\n*** Add File: ${file}\n+${content.trim()}\n*** End Patch`,
    },
  };
  const name = Object.keys(calls).find((known) => toolNames.includes(known));
  if (name === undefined) {
    return null;
  }
  const json = JSON.stringify(calls[name]);
  return {
    id: `call_${turn}`,
    name,
    argumentPieces: [json.slice(0, 9), json.slice(9)],
  };
}
