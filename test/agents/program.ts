import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { startProcess } from "../../core/execute.ts";
import { inProject } from "../../infra/project-files.ts";
import { programEnv } from "../servers/program-env.ts";
import type { AgentTestbed } from "./testbed.ts";

/** The directory into which scripts/toolchain.sh installed the programs. */
export const PROGRAMS = programsDirectory();

interface ProgramOptions {
  /** The virtual key: `HEARTH_KEY`. */
  readonly key: string;
  /** Files by path below the home directory, such as `.codex/config.toml`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Whose `node_modules` the working directory has. */
  readonly modules?: string;
  /** Ends the program once it has shown this, instead of waiting while it retries for minutes. */
  readonly until?: string;
  /** In a terminal, where programs show more than their output to a file has. */
  readonly terminal?: boolean;
}

export interface ProgramRun {
  readonly exitCode: number | undefined;
  /** What the user sees, without colours. */
  readonly output: string;
}

/** A home and a working directory for the runs of one test. */
export interface Place {
  readonly home: string;
  readonly work: string;
  remove(): void;
}

export function createPlace(): Place {
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-agents-"));
  const home = join(directory, "home");
  const work = join(directory, "work");
  for (const path of [home, work, join(directory, "tmp")]) {
    mkdirSync(path);
  }
  return {
    home,
    work,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const IN_TERMINAL = ["python3", inProject("test/agents/terminal.py")];
/** A sentence with the codes for its colours. */
const MAX_PAINTED_CHARACTERS = 2_000;
/** A program that retries for ever is ended, and its test fails. */
const MAX_RUN_MS = 200_000;

/** Runs documented commands as a reader would, with the address of the test's gateway and without an outside world. */
export async function runCommands(
  testbed: AgentTestbed,
  { home, work }: Place,
  commands: string,
  { key, files = {}, env = {}, modules, until, terminal }: ProgramOptions,
): Promise<ProgramRun> {
  const here = (text: string) =>
    text.replaceAll("http://127.0.0.1:4000", testbed.gateway.url);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), here(text));
  }
  if (modules !== undefined) {
    symlinkSync(modules, join(work, "node_modules"));
  }
  const { PATH, ...rest } = programEnv();
  let shown = "";
  const show = (text: string) => {
    shown += text;
    // A terminal is painted many times a second: what it showed before is searched no more.
    const latest = shown.slice(-text.length - MAX_PAINTED_CHARACTERS);
    if (
      until !== undefined &&
      stripVTControlCharacters(latest).includes(until)
    ) {
      endGroup(pid, terminal ? "SIGTERM" : "SIGKILL");
    }
  };
  const shell = ["sh", "-c", here(commands)];
  const [file = "", ...args] = terminal ? [...IN_TERMINAL, ...shell] : shell;
  const { pid, ended } = startProcess(file, args, {
    cwd: work,
    detached: true,
    stdout: show,
    stderr: show,
    env: {
      ...rest,
      PATH: [
        join(PROGRAMS, "npm/node_modules/.bin"),
        join(PROGRAMS, "llm/bin"),
        join(PROGRAMS, "aider/bin"),
        dirname(process.execPath),
        PATH,
      ].join(delimiter),
      HOME: home,
      // Codex refuses to run from a home below the temporary directory.
      TMPDIR: join(dirname(home), "tmp"),
      TERM: terminal ? "xterm-256color" : "dumb",
      // No sentence is broken into lines.
      COLUMNS: "200",
      HEARTH_KEY: key,
      ...testbed.outside.env,
      ...env,
    },
  });
  let hung = false;
  const timer = setTimeout(() => {
    hung = true;
    endGroup(pid);
  }, MAX_RUN_MS);
  const { exitCode } = await ended;
  clearTimeout(timer);
  // What the program left running.
  endGroup(pid);
  const output = stripVTControlCharacters(shown);
  if (hung) {
    throw new Error(`the program did not end: ${output.slice(-2_000)}`);
  }
  return { exitCode, output };
}

/** Ends the program and everything that it started. */
function endGroup(
  pid: number | undefined,
  signal: NodeJS.Signals = "SIGKILL",
): void {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}

function programsDirectory(): string {
  const directory = process.env["HEARTH_AGENTS"];
  if (directory === undefined) {
    throw new Error(
      "The programs are not installed: run the tests with `npm run test:agents`.",
    );
  }
  return directory;
}
