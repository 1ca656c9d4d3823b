import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { dockerAt } from "../../infra/engine.ts";
import { inProject } from "../../infra/project-files.ts";
import { openSession, type Session } from "../../infra/deploy/session.ts";
import { allHealthy } from "./containers.ts";
import type { Testbed } from "./testbed.ts";

interface Ended {
  /** null: by a signal. */
  readonly code: number | null;
  readonly output: string;
}

/**
 * Runs `npm run deploy -- WORDS` on the test stack as an operator does, in a separate process group. `onOutput` is called after
 * every piece of output and may signal the group, as a terminal does: bin/run.js passes the signal on a second time.
 */
export function deploy(
  { stack: { name, workspace } }: Pick<Testbed, "stack">,
  words: readonly string[],
  onOutput: (
    output: string,
    signal: (name: NodeJS.Signals) => void,
  ) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(
    process.execPath,
    [
      inProject("bin/run.js"),
      inProject("infra/deploy/main.ts"),
      ...words,
      "--stack",
      name,
      "--cwd",
      workspace.workDir,
    ],
    {
      detached: true,
      env: {
        ...process.env,
        ...workspace.envVars,
        // The engine that the testbed uses; plugins are found there too.
        PATH: `${dirname(workspace.pulumiCommand.command)}:${workspace.envVars["PATH"] ?? process.env["PATH"]}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  const heard = (text: Buffer): void => {
    output += String(text);
    onOutput(output, (name) => {
      if (child.pid !== undefined && child.exitCode === null) {
        process.kill(-child.pid, name);
      }
    });
  };
  child.stdout.on("data", heard);
  child.stderr.on("data", heard);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => {
      const ended = (): void => resolve({ code, output });
      // Its last output may still arrive; plugins left behind by a kill keep the pipe open.
      child.on("close", ended);
      setTimeout(ended, 2_000);
    });
  });
}

/**
 * The context of the deploy command, for scenarios that call its parts; events are collected as text. The SDK's debug messages,
 * which are never shown, are excluded: they contain the engine's answers with secrets in clear while the command runs.
 */
export async function sessionOf(
  { stack }: Testbed,
  events: string[] = [],
): Promise<Session> {
  return openSession(stack, () => undefined, {
    onEvent: (event) => {
      // Their severity is missing in the type declaration.
      if (String(event.diagnosticEvent?.severity) !== "debug") {
        events.push(JSON.stringify(event));
      }
    },
  });
}

/** The current value of a setting of the stack. */
export async function settingOf(
  { stack }: Testbed,
  name: string,
): Promise<string> {
  return (await stack.getConfig(`hearth:${name}`)).value;
}

/** Which of their two roles the gateways log in with; not written until the first rotation. */
export async function gatewayRoleOf({ stack }: Testbed): Promise<string> {
  return (await stack.getAllConfig())["hearth:gatewayRole"]?.value ?? "a";
}

/** One docker command with something on its standard input. */
export async function dockerWithInput(
  session: Session,
  host: "a" | "b",
  args: readonly string[],
  input: string,
): Promise<string> {
  return dockerAt(session.engines[host], args, input);
}

/** The file of the stack's state. */
export function stateFile({ stack: { workspace } }: Testbed): string {
  return join(workspace.workDir, "state/.pulumi/stacks/hearth/test.json");
}

export async function ask(
  edge: string | undefined,
  path: string,
  bearer: string,
  body?: unknown,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(`${edge}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${bearer}`,
      "content-type": "application/json",
      // A kept connection may lead to a gateway that no longer exists.
      connection: "close",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) {
    throw new Error(`${path}: ${answer.status} ${text}`);
  }
  return JSON.parse(text) as Record<string, unknown>;
}

export async function upWithRefresh(testbed: Testbed): Promise<void> {
  const { code, output } = await timed("up --refresh", () =>
    deploy(testbed, ["up", "--refresh"]),
  );
  expect(code, output).toBe(0);
  await allHealthy(testbed);
}

export async function nothingDisagrees(testbed: Testbed): Promise<void> {
  const { output } = await deploy(testbed, ["doctor"]);
  expect(output).toContain("State, hosts and configuration agree.");
}

export async function timed<T>(
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  try {
    return await work();
  } finally {
    say(`${what}: ${((performance.now() - started) / 1000).toFixed(0)} s`);
  }
}

export function say(line: string): void {
  process.stdout.write(`  ${line}\n`);
}

/** Drops the output of a command. */
export function quiet(): void {}
