import { parseArgs } from "node:util";
import { password, isCancel } from "@clack/prompts";
import type { EngineEvent } from "@pulumi/pulumi/automation/events.js";
import { DEFAULT_STACK, withStackFlag } from "../../core/stack-flag.ts";
import { rejectUnknownStack } from "../config/stack-file.ts";
import {
  failedResource,
  lastLines,
  openStack,
  type FailedResource,
} from "./deploy-stack.ts";
import { hostFlag, UsageError, USAGE } from "./flags.ts";
import type { Tunnel } from "./tunnel.ts";
import { onInterrupts } from "./interrupts.ts";
import { rejectLocked } from "./lock.ts";
import { reachPostgres } from "./reach-postgres.ts";
import { reasonOf } from "./reason.ts";
import { openSession, type Session } from "./session.ts";
import { RELEASE_TYPE } from "./state.ts";
import { runVerb } from "./verbs.ts";

/** Runs one verb on the stack. Exit codes: 0 success, 1 failure, 2 usage error. */
async function main(): Promise<number> {
  const { values, positionals } = readArguments();
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (positionals.length === 0) {
    process.stderr.write(USAGE);
    return 2;
  }
  const stackName = values.stack ?? DEFAULT_STACK;
  rejectUnknownStack(stackName, values.cwd);
  await askForPassphrase();
  const stack = await openStack({
    stackName,
    ...(values.cwd === undefined ? {} : { workDir: values.cwd }),
  });
  const failed: FailedResource[] = [];
  const say = (line: string): void =>
    void process.stdout.write(`${withStackFlag(line, stackName)}\n`);
  const session = await openSession(stack, say, {
    onEvent: (event: EngineEvent): void => {
      const resource = failedResource(event);
      if (resource !== null) {
        failed.push(resource);
      }
    },
    onOutput: (text: string) => void process.stdout.write(text),
    color: process.stdout.isTTY ? "always" : "never",
  });
  let tunnel: Tunnel | null = null;
  try {
    const [verb] = positionals;
    // Both must work if nothing else does.
    if (verb !== "cancel" && verb !== "doctor") {
      letEngineStop(say);
      // A preview takes no lock.
      if (verb !== "preview") {
        await rejectLocked(session);
      }
      tunnel = await reachPostgres(session, hostFlag(values.without));
    }
    return await runVerb(session, positionals, values);
  } catch (error) {
    const isUsage = error instanceof UsageError;
    const reason = isUsage ? error.message : reasonOf(error);
    process.stderr.write(`hearth: ${withStackFlag(reason, stackName)}\n`);
    if (isUsage) {
      return 2;
    }
    process.stderr.write(await describeFailed(session, failed));
    return 1;
  } finally {
    await tunnel?.close();
  }
}

/** What the containers or pods of failed resources say. */
async function describeFailed(
  session: Session,
  failed: readonly FailedResource[],
): Promise<string> {
  if (failed.some(({ urn }) => urn.includes(`${RELEASE_TYPE}::`))) {
    const { describeUnreadyPods } = await import("./unready-pods.ts");
    return describeUnreadyPods(session);
  }
  const logs = failed.map(async ({ container, host }) =>
    container === null || host === null
      ? ""
      : `\nLast log lines of ${container} on host ${host.toUpperCase()}:\n${await lastLines(session.engines[host], container)}\n`,
  );
  return (await Promise.all(logs)).join("");
}

/**
 * The terminal also sends Ctrl-C to the engine: it finishes the running operations and ends, immediately on the second signal.
 * Ending before the engine would leave it without its program.
 */
function letEngineStop(say: (line: string) => void): void {
  onInterrupts(
    () =>
      say(
        "Stopping after the running operations; press Ctrl-C again to stop immediately.",
      ),
    () => void setTimeout(() => process.exit(130), 3_000).unref(),
  );
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        stack: { type: "string" },
        cwd: { type: "string" },
        refresh: { type: "boolean" },
        without: { type: "string" },
        "no-backup": { type: "boolean" },
        grace: { type: "string" },
        end: { type: "boolean" },
        "forget-old": { type: "boolean" },
        purge: { type: "boolean" },
        yes: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    process.stderr.write(`hearth: ${(error as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

/** The engine cannot prompt while it is driven by a program. */
async function askForPassphrase(): Promise<void> {
  const { PULUMI_CONFIG_PASSPHRASE, PULUMI_CONFIG_PASSPHRASE_FILE } =
    process.env;
  if (
    (PULUMI_CONFIG_PASSPHRASE ?? PULUMI_CONFIG_PASSPHRASE_FILE) !== undefined
  ) {
    return;
  }
  if (!process.stdin.isTTY) {
    throw new Error(
      "the passphrase of the stack's secrets is required: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE.",
    );
  }
  const answer = await password({
    message: "Passphrase of the stack's secrets",
  });
  if (isCancel(answer)) {
    throw new Error("canceled; nothing was changed.");
  }
  process.env["PULUMI_CONFIG_PASSPHRASE"] = answer;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`hearth: ${reasonOf(error)}\n`);
    process.exit(1);
  },
);
