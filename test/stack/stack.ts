import { spawn, type ChildProcess } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { freePort } from "../servers/ports.ts";
import { withClient } from "../servers/with-client.ts";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

/** `npm start` in a separate home, as in a first installation. */
export interface Stack {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly gatewayUrl: string;
  readonly notesUrl: string;
  readonly supervisorUrl: string;
  /** Starts the stack and waits for the last lines of the start; rejects with the output when it exits first. */
  start(more?: Readonly<Record<string, string>>): Promise<StartedStack>;
  secrets(): Readonly<Record<string, string>>;
  /** The headers that authenticate the operator's commands to the supervisor. */
  asOperator(): Readonly<Record<string, string>>;
  run(): RunFile;
  /** Queries the ledger's database as superuser. */
  ledger<Row extends pg.QueryResultRow>(text: string): Promise<readonly Row[]>;
  /** Stops all processes that are still running and removes the home. */
  remove(): Promise<void>;
}

export interface StartedStack {
  readonly process: ChildProcess;
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

interface RunFile {
  readonly supervisor: { readonly pid: number } | null;
  readonly services: Readonly<
    Record<
      string,
      {
        readonly pid: number | null;
        readonly address: string;
        readonly port: number;
      }
    >
  >;
}

const START_LIMIT_MS = 90_000;

export async function prepareStack(): Promise<Stack> {
  const home = mkdtempSync(join(tmpdir(), "hearth-test-stack-"));
  shareCompiledCode(home);
  const [gateway, notes, supervisor] = [
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const env = {
    HEARTH_HOME: home,
    HEARTH_GATEWAY_PORT: String(gateway),
    HEARTH_NOTES_PORT: String(notes),
    HEARTH_SUPERVISOR_PORT: String(supervisor),
  };
  const started: StartedStack[] = [];

  function run(): RunFile {
    return JSON.parse(readFileSync(join(home, "run.json"), "utf8")) as RunFile;
  }

  function secrets(): Readonly<Record<string, string>> {
    return JSON.parse(
      readFileSync(join(home, "secrets.json"), "utf8"),
    ) as Record<string, string>;
  }

  return {
    home,
    env,
    gatewayUrl: `http://127.0.0.1:${gateway}`,
    notesUrl: `http://127.0.0.1:${notes}`,
    supervisorUrl: `http://127.0.0.1:${supervisor}`,
    run,
    secrets,
    asOperator: () => ({ authorization: `Bearer ${secrets()["cliToken"]}` }),
    async start(more = {}) {
      const stack = npmStart({ ...env, ...more });
      started.push(stack);
      await untilPrinted(stack, "Stop: Ctrl-C");
      return stack;
    },
    async ledger(text) {
      return withClient(
        {
          host: "127.0.0.1",
          port: run().services["postgres"]?.port ?? 0,
          user: "postgres",
          password: secrets()["postgresPassword"] ?? "",
          database: "hearth",
        },
        async (client) => {
          return (await client.query(text)).rows;
        },
      );
    },
    async remove() {
      for (const stack of started) {
        if (isRunning(stack)) {
          pressCtrlC(stack);
        }
      }
      await Promise.race([
        Promise.all(started.map((stack) => stack.exited)),
        sleep(30_000),
      ]);
      if (existsSync(join(home, "run.json"))) {
        for (const pid of pidsOf(run())) {
          killGroup(pid);
        }
      }
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Without this, each test's programs would be compiled again. */
function shareCompiledCode(home: string): void {
  const shared = process.env["NODE_COMPILE_CACHE"];
  if (shared !== undefined) {
    symlinkSync(shared, join(home, "cache"));
  }
}

/** Runs `npm start` with these variables and collects its output. */
export function npmStart(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): StartedStack {
  let output = "";
  const child = spawn("npm", ["start", "--silent", "--", ...args], {
    cwd: projectRoot,
    env: { ...process.env, ...env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    // A separate process group, as in a terminal.
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  }
  const exited = new Promise<number | null>((resolve) =>
    child.once("exit", (code) => resolve(code)),
  );
  return { process: child, output: () => output, exited };
}

/** Like Ctrl-C: signals every process of the terminal's group at once. */
export function pressCtrlC(stack: StartedStack): void {
  process.kill(-(stack.process.pid ?? 0), "SIGINT");
}

async function untilPrinted(stack: StartedStack, words: string): Promise<void> {
  const until = Date.now() + START_LIMIT_MS;
  while (!stack.output().includes(words)) {
    if (!isRunning(stack) || Date.now() > until) {
      throw new Error(`"${words}" was not printed. Output: ${stack.output()}`);
    }
    await sleep(50);
  }
}

function isRunning({
  process: { exitCode, signalCode },
}: StartedStack): boolean {
  return exitCode === null && signalCode === null;
}

function pidsOf(run: RunFile): readonly number[] {
  const pids = [
    run.supervisor?.pid,
    ...Object.values(run.services).map(({ pid }) => pid),
  ];
  return pids.filter((pid) => typeof pid === "number");
}

function killGroup(pid: number): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, "SIGKILL");
    } catch {
      // It has already exited.
    }
  }
}
