import { parseArgs } from "node:util";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { intro, isCancel, outro, password, text } from "@clack/prompts";
import { withStackFlag } from "../../core/stack-flag.ts";
import { readConfig } from "../config/config.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import { openStack } from "../deploy/deploy-stack.ts";
import { readOwnValues } from "../deploy/session.ts";
import { writeSettings } from "../deploy/settings.ts";
import { checkHosts } from "./check-hosts.ts";
import { sentenceOf } from "./finding.ts";
import {
  initCluster,
  initHosts,
  settingsForCluster,
  type InitKind,
} from "./init-kinds.ts";
import { offerFor, type Question } from "./init-questions.ts";
import { settingsBeside } from "./neighbours.ts";
import {
  readStackFile,
  settingsList,
  stackFile,
  stacksWithFile,
} from "../config/stack-file.ts";

const listOf = ({ questions }: InitKind) =>
  questions.map(({ flag, ask }) => `  --${flag.padEnd(16)} ${ask}`).join("\n");

const usage = `usage: npm run init -- [--stack home] [answers] [--yes] [--skip-checks]
       npm run init -- --kubernetes [--stack grown] [--from home] [answers] [--yes]

Creates the stack's configuration: asks for the two hosts, generates every secret, writes Pulumi.<stack>.yaml with the secrets
encrypted, and checks both hosts. Existing settings are kept. Every answer can be given as an option:

${listOf(initHosts)}
  --provider-key     NAME=KEY of a cloud provider, e.g. OPENAI_API_KEY=…; repeatable (visible to other users: prefer the prompt)
  --yes              do not prompt: use options and defaults
  --skip-checks      do not check the hosts

With --kubernetes, the stack is for an existing cluster (docs/growing.md); --from takes over the secrets and settings of a stack on
two hosts, so that its keys and backups stay valid:

${listOf(initCluster)}

example: npm run init -- --docker-a ssh://root@192.168.1.10 --docker-b ssh://root@192.168.1.11 \\
           --address-a 192.168.1.10 --address-b 192.168.1.11 --yes
`;

async function main(): Promise<number> {
  const flags = readArguments();
  if (flags.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  const asking = flags.yes !== true && process.stdin.isTTY;
  const kind = flags["kubernetes"] === true ? initCluster : initHosts;
  rejectFlagsOfOthers(kind, flags);
  if (asking) {
    intro(kind.title);
  }
  const stackName = String(flags["stack"] ?? kind.stackName);
  await providePassphrase(asking);
  const known = await knownSettings(stackName);
  const taken =
    typeof flags["from"] === "string"
      ? settingsForCluster(await requiredSettings(flags["from"]))
      : {};
  const answered = await askForSettings(
    kind,
    flags,
    { ...taken, ...known },
    asking,
  );
  const isNew = Object.keys(known).length === 0;
  const settings =
    kind === initHosts && isNew
      ? { ...answered, ...besideOthers(answered, stackName) }
      : answered;
  const errors = kind.mistakes(settings);
  if (errors.length > 0) {
    for (const error of errors) {
      process.stderr.write(`hearth: ${error}\n`);
    }
    return 1;
  }
  await writeStackFile(kind, stackName, known, settings);
  const isFine =
    kind === initCluster ||
    flags["skip-checks"] === true ||
    (await reportHostChecks(stackName, settings));
  const done = describeEnd(stackName, isFine);
  if (asking) {
    outro(done);
  } else {
    process.stdout.write(`${done}\n`);
  }
  return isFine ? 0 : 1;
}

/** Prefix and ports that differ from those of other stacks on the same hosts. */
function besideOthers(
  settings: Readonly<Record<string, string>>,
  stackName: string,
): Readonly<Record<string, string>> {
  const others = stacksWithFile()
    .filter((each) => each !== stackName)
    .map((each) => readStackFile(stackFile(each)));
  const own = settingsBeside(others, settings, stackName);
  for (const [key, value] of Object.entries(own)) {
    process.stderr.write(
      `another stack uses the same hosts: hearth:${key} is ${value}\n`,
    );
  }
  return own;
}

/** The settings of a stack; none for a new one. */
async function knownSettings(
  stackName: string,
): Promise<Readonly<Record<string, string>>> {
  return existsSync(stackFile(stackName))
    ? readOwnValues(await openStack({ stackName }))
    : {};
}

async function requiredSettings(
  stackName: string,
): Promise<Readonly<Record<string, string>>> {
  if (!existsSync(stackFile(stackName))) {
    throw new Error(
      `--from ${stackName}: ${basename(stackFile(stackName))} does not exist; run this command where that stack's file is.`,
    );
  }
  return knownSettings(stackName);
}

/** Throws one sentence for an option of the other kind of stack. */
function rejectFlagsOfOthers(kind: InitKind, flags: Flags): void {
  const isCluster = kind === initCluster;
  const foreign = [
    ...(isCluster ? initHosts : initCluster).questions.map(({ flag }) => flag),
    ...(isCluster ? ["skip-checks"] : ["from"]),
  ].find((flag) => flags[flag] !== undefined);
  if (foreign !== undefined) {
    throw new Error(
      `--${foreign} is for ${isCluster ? "two hosts: leave it or --kubernetes out" : "--kubernetes: add that, or leave it out"}.`,
    );
  }
}

async function askForSettings(
  kind: InitKind,
  flags: Flags,
  known: Readonly<Record<string, string>>,
  asking: boolean,
): Promise<Readonly<Record<string, string>>> {
  const answers: Record<string, string> = {};
  for (const question of kind.questions) {
    answers[question.flag] = await answerTo(
      question,
      flags,
      offerFor(question, answers, kind.answersOf(known)),
      asking,
    );
  }
  return {
    ...kind.newSettings(Object.keys(known).length === 0),
    // A second run keeps existing values: new secrets would lock the stack out of its own data.
    ...kind.withAnswers(known, answers),
    ...withProviderKeys(known, await askProviderKeys(flags, known, asking)),
  };
}

async function writeStackFile(
  kind: InitKind,
  stackName: string,
  known: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const file = stackFile(stackName);
  const isNew = !existsSync(file);
  process.stderr.write(
    `writing ${basename(file)} (each secret is encrypted separately) …\n`,
  );
  await writeSettings(
    { stack: await openStack({ stackName }) },
    known,
    settings,
  );
  if (isNew) {
    writeFileSync(
      file,
      `${settingsList(kind.list)}${readFileSync(file, "utf8")}`,
    );
  }
}

function describeEnd(stackName: string, isFine: boolean): string {
  const up = `npm run deploy -- up${stackName === "home" ? "" : ` --stack ${stackName}`}`;
  const next = isFine
    ? `npx pulumi up --stack ${stackName}, or ${up}`
    : `fix the problems, check again with npx hearth doctor --hosts --stack ${stackName}, then ${up}`;
  return `Pulumi.${stackName}.yaml is saved with encrypted secrets. Next: ${next}`;
}

/** Whether both hosts pass their checks. */
async function reportHostChecks(
  stackName: string,
  settings: Readonly<Record<string, string>>,
): Promise<boolean> {
  const read = readConfig({ values: settings, isSecret: () => true });
  const wrong = read.ok
    ? (await runHostChecks(read.config)).filter(({ ok }) => !ok)
    : [];
  for (const finding of wrong) {
    process.stderr.write(
      `hearth: ${withStackFlag(sentenceOf(finding), stackName)}\n`,
    );
  }
  return wrong.length === 0;
}

function runHostChecks(config: HearthConfig): ReturnType<typeof checkHosts> {
  process.stderr.write(
    "checking both hosts; the first check pulls the base image …\n",
  );
  return checkHosts(config);
}

type Flags = Readonly<
  Record<string, string | boolean | readonly string[] | undefined>
>;

function readArguments(): Flags {
  const options = Object.fromEntries(
    [...initHosts.questions, ...initCluster.questions].map(({ flag }) => [
      flag,
      { type: "string" as const },
    ]),
  );
  try {
    return parseArgs({
      options: {
        ...options,
        stack: { type: "string" },
        kubernetes: { type: "boolean" },
        from: { type: "string" },
        yes: { type: "boolean" },
        "skip-checks": { type: "boolean" },
        "provider-key": { type: "string", multiple: true },
        help: { type: "boolean", short: "h" },
      },
    }).values as Flags;
  } catch (error) {
    process.stderr.write(`hearth: ${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

async function providePassphrase(asking: boolean): Promise<void> {
  const { PULUMI_CONFIG_PASSPHRASE, PULUMI_CONFIG_PASSPHRASE_FILE } =
    process.env;
  if (
    (PULUMI_CONFIG_PASSPHRASE ?? PULUMI_CONFIG_PASSPHRASE_FILE) !== undefined
  ) {
    return;
  }
  if (!asking) {
    throw new Error(
      "a passphrase for the secrets is required: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE.",
    );
  }
  process.env["PULUMI_CONFIG_PASSPHRASE"] = given(
    await password({
      message:
        "Passphrase for the stack's secrets (keep it: they cannot be decrypted without it)",
    }),
  );
}

async function answerTo(
  question: Question,
  flags: Flags,
  offered: string,
  asking: boolean,
): Promise<string> {
  const flag = flags[question.flag];
  if (typeof flag === "string") {
    return flag;
  }
  if (!asking) {
    return offered;
  }
  return given(
    await text({ message: question.ask, initialValue: offered }),
  ).trim();
}

async function askProviderKeys(
  flags: Flags,
  known: Readonly<Record<string, string>>,
  asking: boolean,
): Promise<Readonly<Record<string, string>>> {
  const keys = Object.fromEntries(
    ((flags["provider-key"] ?? []) as readonly string[]).map((pair) => {
      const [name = "", ...rest] = pair.split("=");
      return [name, rest.join("=")];
    }),
  );
  if (asking) {
    for (const name of [
      "OPENAI_API_KEY",
      "ANTHROPIC_API_KEY",
      "GEMINI_API_KEY",
    ]) {
      if (name in keys) {
        continue;
      }
      const without = name in providerKeysOf(known) ? "unchanged" : "none";
      const key = given(
        await password({ message: `${name} (empty: ${without})` }),
      );
      if (key !== "") {
        keys[name] = key;
      }
    }
  }
  return keys;
}

function providerKeysOf(
  known: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return JSON.parse(known["providerKeys"] ?? "{}") as Record<string, string>;
}

function withProviderKeys(
  known: Readonly<Record<string, string>>,
  keys: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.keys(keys).length === 0
    ? {}
    : { providerKeys: JSON.stringify({ ...providerKeysOf(known), ...keys }) };
}

function given(answer: string | symbol): string {
  if (isCancel(answer)) {
    throw new Error("canceled; nothing was written.");
  }
  return String(answer);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(
      `hearth: ${((error as Error).message.split("\n")[0] ?? "").trim()}\n`,
    );
    process.exit(1);
  },
);
