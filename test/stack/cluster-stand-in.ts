import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { projectRoot } from "./stack.ts";

// Run as ssh, docker, kubectl, npx or hearth: two stacks on this machine stand in for the containers of two hosts and for the pods of a
// cluster. Commands run in their homes, at the paths that the containers and pods have.

/** The stacks, in STAND_IN_STACKS as JSON. */
export interface StandIns {
  readonly hosts: StandIn;
  readonly cluster: StandIn;
  readonly clusterPostgresPort: number;
}

interface StandIn {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}

const COMMANDS = ["ssh", "docker", "kubectl", "npx", "hearth"];

/** Writes the commands into a directory, to be the first on the PATH. */
export function writeStandIns(directory: string): void {
  for (const command of COMMANDS) {
    const file = join(directory, command);
    writeFileSync(
      file,
      `#!/bin/sh\nexec '${process.execPath}' '${fileURLToPath(import.meta.url)}' ${command} "$@"\n`,
    );
    chmodSync(file, 0o755);
  }
}

async function main([
  command = "",
  ...args
]: readonly string[]): Promise<number> {
  const stacks = JSON.parse(process.env["STAND_IN_STACKS"] ?? "") as StandIns;
  switch (command) {
    case "ssh":
      // As ssh: the words are joined, and the remote shell parses them again.
      return run("sh", ["-c", args.slice(1).join(" ")]);
    case "hearth":
      return run(process.execPath, [
        join(projectRoot, "bin", "hearth.js"),
        ...args,
      ]);
    case "docker":
      return docker(stacks.hosts, args);
    case "kubectl":
      return kubectl(stacks, args);
    case "npx": {
      const [, setting = ""] =
        /^pulumi config get hearth:(\w+) --stack grown$/.exec(args.join(" ")) ??
        [];
      process.stdout.write(`${secretOf(stacks.cluster, setting)}\n`);
      return 0;
    }
    default:
      throw new Error(`no stand-in for ${command}`);
  }
}

async function docker(
  { home, env }: StandIn,
  [verb = "", ...args]: readonly string[],
): Promise<number> {
  if (verb === "exec" && args[0] === "hearth-supervisor") {
    const [program = "", ...rest] = args
      .slice(1)
      .map((word) => word.replaceAll("/var/lib/hearth", home));
    return run(program, rest, env);
  }
  const container = args.at(-1);
  if (verb === "stop" && container === "hearth-gateway") {
    await stopGateway(home);
    return 0;
  }
  if (verb === "stop" && container === "hearth-edge") {
    return 0;
  }
  throw new Error(`no stand-in for docker ${verb} ${args.join(" ")}`);
}

async function kubectl(
  { cluster: { home, env }, clusterPostgresPort }: StandIns,
  words: readonly string[],
): Promise<number> {
  const end = words.indexOf("--");
  const ours = words.slice(0, end === -1 ? undefined : end);
  const line = ours.filter((word) => word !== "-i").join(" ");
  if (line === "exec -n hearth hearth-supervisor-0") {
    const [program = "", ...rest] = words
      .slice(end + 1)
      .map((word) =>
        word
          .replaceAll("/var/lib/hearth/home", home)
          .replaceAll(
            "hearth-postgres:5432",
            `127.0.0.1:${clusterPostgresPort}`,
          ),
      );
    return run(program, rest, env);
  }
  if (line === "rollout restart -n hearth statefulset/hearth-gateway") {
    return run("hearth", ["restart", "gateway"], env);
  }
  if (line === "rollout status -n hearth statefulset/hearth-gateway") {
    return 0;
  }
  throw new Error(`no stand-in for kubectl ${words.join(" ")}`);
}

/** Stops it as `docker stop` does: it finishes its calls and writes its journal to the ledger. */
async function stopGateway(home: string): Promise<void> {
  const { services } = JSON.parse(
    readFileSync(join(home, "run.json"), "utf8"),
  ) as { readonly services: Record<string, { readonly pid: number | null }> };
  const pid = services["gateway"]?.pid ?? null;
  for (let signal: NodeJS.Signals | 0 = "SIGTERM"; pid !== null; signal = 0) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    await sleep(100);
  }
}

function secretOf({ home }: StandIn, name: string): string {
  const secrets = JSON.parse(
    readFileSync(join(home, "secrets.json"), "utf8"),
  ) as Record<string, string>;
  const secret = secrets[name];
  if (secret === undefined) {
    throw new Error(`no setting ${name}`);
  }
  return secret;
}

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): number {
  const { status, error } = spawnSync(program, args, {
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (error !== undefined) {
    throw error;
  }
  return status ?? 1;
}

if (
  COMMANDS.includes(process.argv[2] ?? "") &&
  basename(process.argv[1] ?? "") === basename(import.meta.url)
) {
  process.exitCode = await main(process.argv.slice(2));
}
