import { parseArgs } from "node:util";
import { password, isCancel } from "@clack/prompts";
import type { EngineEvent } from "@pulumi/pulumi/automation/events.js";
import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import {
  failedResource,
  lastLines,
  openStack,
  parallel,
  type FailedResource,
} from "./deploy-stack.ts";
import { openTunnel, type Tunnel } from "./deploy-tunnel.ts";

const usage = `usage: npm run deploy -- up|preview|refresh [--stack home] [--refresh] [--yes]

  up        make the hosts what the program and the configuration say (--refresh looks at the hosts first)
  preview   say what up would do
  refresh   look at the hosts and remember what is there

example: npm run deploy -- preview
`;

type Verb = "up" | "preview" | "refresh";

/** Runs one verb on the stack. Exit codes: 0 done, 1 failed, 2 not understood. */
async function main(): Promise<number> {
  const { values, positionals } = readArguments();
  const [verb] = positionals;
  if (values.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  if (!isVerb(verb) || positionals.length > 1) {
    process.stderr.write(usage);
    return 2;
  }
  await askForPassphrase();
  const stack = await openStack({ stackName: values.stack ?? "home" });
  const endpoints = await readEndpoints(stack);
  let tunnel: Tunnel | null = null;
  const failed: FailedResource[] = [];
  const onEvent = (event: EngineEvent): void => {
    const resource = failedResource(event);
    if (resource !== null) failed.push(resource);
  };
  const options = {
    parallel,
    onEvent,
    onOutput: (text: string) => void process.stdout.write(text),
    color: process.stdout.isTTY ? "always" : "never",
  } as const;
  try {
    tunnel = await openTunnel(stack, endpoints);
    const changes = await run(verb, values.refresh === true);
    process.stdout.write(`${summary(changes)}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(`hearth: ${firstLine(error)}\n`);
    for (const { container, host } of failed)
      if (container !== null && host !== null)
        process.stderr.write(
          `\nThe last that ${container} on host ${host.toUpperCase()} said:\n${await lastLines(endpoints[host], container)}\n`,
        );
    return 1;
  } finally {
    await tunnel?.close();
  }

  async function run(
    wanted: Verb,
    refresh: boolean,
  ): Promise<OpMap | undefined> {
    switch (wanted) {
      case "up":
        return (await stack.up({ ...options, refresh })).summary
          .resourceChanges;
      case "preview":
        return (await stack.preview({ ...options, refresh })).changeSummary;
      case "refresh":
        return (
          await stack.refresh({
            ...options,
            // Left behind by an interruption; the container itself is cleared by the next up.
            clearPendingCreates: true,
          })
        ).summary.resourceChanges;
    }
  }
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        stack: { type: "string" },
        refresh: { type: "boolean" },
        yes: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    process.stderr.write(`hearth: ${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

function isVerb(text: string | undefined): text is Verb {
  return text === "up" || text === "preview" || text === "refresh";
}

/** The engine cannot ask while it is driven by a program. */
async function askForPassphrase(): Promise<void> {
  const { PULUMI_CONFIG_PASSPHRASE, PULUMI_CONFIG_PASSPHRASE_FILE } =
    process.env;
  if ((PULUMI_CONFIG_PASSPHRASE ?? PULUMI_CONFIG_PASSPHRASE_FILE) !== undefined)
    return;
  if (!process.stdin.isTTY)
    throw new Error(
      "the passphrase of the stack's secrets is not known: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE.",
    );
  const answer = await password({
    message: "Passphrase of the stack's secrets",
  });
  if (isCancel(answer)) throw new Error("stopped; nothing was changed.");
  process.env["PULUMI_CONFIG_PASSPHRASE"] = answer;
}

type Endpoints = Parameters<typeof openTunnel>[1];

async function readEndpoints(
  stack: Awaited<ReturnType<typeof openStack>>,
): Promise<Endpoints> {
  const all = await stack.getAllConfig();
  const hosts = JSON.parse(all["hearth:hosts"]?.value ?? "{}") as Partial<
    Record<"a" | "b", { docker?: string; sshOpts?: readonly string[] }>
  >;
  const of = (name: "a" | "b") => ({
    endpoint: hosts[name]?.docker ?? "",
    sshOpts: hosts[name]?.sshOpts ?? [],
  });
  return { a: of("a"), b: of("b") };
}

function summary(changes: OpMap | undefined): string {
  const parts = Object.entries(changes ?? {}).map(
    ([operation, count]) => `${count} ${operation}`,
  );
  return parts.length === 0 ? "nothing to do" : parts.join(", ");
}

/** Of the engine's long report, what went wrong. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const said = /^\s*error: (?!update failed|preview failed)(.+)$/m.exec(text);
  return said?.[1] ?? text.split("\n")[0] ?? text;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`hearth: ${firstLine(error)}\n`);
    process.exit(1);
  },
);
