import { parseArgs } from "node:util";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { intro, isCancel, outro, password, text } from "@clack/prompts";
import { secretFields } from "../config/config-schema.ts";
import {
  postgresMajorOf,
  readConfig,
  type HearthConfig,
} from "../config/config.ts";
import { pinnedImages } from "../images/images.ts";
import { openStack } from "../deploy/deploy-stack.ts";
import { readOwnValues } from "../deploy/session.ts";
import { writeSettings } from "../deploy/settings.ts";
import { checkHosts } from "./check-hosts.ts";
import { sentenceOf } from "./finding.ts";
import {
  answersOf,
  makeSecrets,
  offerFor,
  QUESTIONS,
  withAnswers,
  type Question,
} from "./init-questions.ts";
import { settingsList, stackFile } from "../config/stack-file.ts";

const usage = `usage: npm run init -- [--stack home] [answers] [--yes] [--skip-checks]

Creates the stack's configuration: asks for the two hosts, generates every secret, writes Pulumi.<stack>.yaml with the secrets
encrypted, and checks both hosts. Existing settings are kept. Every answer can be given as an option:

${QUESTIONS.map(({ flag, ask }) => `  --${flag.padEnd(16)} ${ask}`).join("\n")}
  --provider-key     NAME=KEY of a cloud provider, e.g. OPENAI_API_KEY=…; repeatable (visible to other users: prefer the prompt)
  --yes              do not prompt: use options and defaults
  --skip-checks      do not check the hosts

example: npm run init -- --docker-a ssh://root@192.168.1.10 --docker-b ssh://root@192.168.1.11 \\
           --address-a 192.168.1.10 --address-b 192.168.1.11 --yes
`;

/** Major version for a new stack; an existing stack keeps its own until `deploy -- upgrade postgres`. */
const postgresVersion = postgresMajorOf(pinnedImages.postgres) ?? "";

async function main(): Promise<number> {
  const flags = readArguments();
  if (flags.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  const asking = flags.yes !== true && process.stdin.isTTY;
  if (asking) {
    intro("Hearth on two hosts");
  }
  const stackName = String(flags.stack ?? "home");
  await providePassphrase(asking);
  const known = existsSync(stackFile(stackName))
    ? await readOwnValues(await openStack({ stackName }))
    : {};
  const settings = await askForSettings(flags, known, asking);
  const read = readConfig({
    values: settings,
    isSecret: (key) => secretFields.includes(key),
  });
  if (!read.ok) {
    for (const error of read.errors) {
      process.stderr.write(`hearth: ${error}\n`);
    }
    return 1;
  }
  await writeStackFile(stackName, known, settings);
  const wrong =
    flags["skip-checks"] === true
      ? []
      : (await runHostChecks(read.config)).filter(({ ok }) => !ok);
  for (const finding of wrong) {
    process.stderr.write(`hearth: ${sentenceOf(finding)}\n`);
  }
  const done = describeEnd(stackName, wrong.length === 0);
  if (asking) {
    outro(done);
  } else {
    process.stdout.write(`${done}\n`);
  }
  return wrong.length === 0 ? 0 : 1;
}

async function askForSettings(
  flags: Flags,
  known: Readonly<Record<string, string>>,
  asking: boolean,
): Promise<Readonly<Record<string, string>>> {
  const answers: Record<string, string> = {};
  for (const question of QUESTIONS) {
    answers[question.flag] = await answerTo(
      question,
      flags,
      offerFor(question, answers, answersOf(known)),
      asking,
    );
  }
  return {
    ...makeSecrets(),
    ...(Object.keys(known).length === 0 ? { postgresVersion } : {}),
    // A second run keeps existing values: new secrets would lock the stack out of its own data.
    ...withAnswers(known, answers),
    ...withProviderKeys(known, await askProviderKeys(flags, known, asking)),
  };
}

async function writeStackFile(
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
    writeFileSync(file, `${settingsList()}${readFileSync(file, "utf8")}`);
  }
}

function describeEnd(stackName: string, isFine: boolean): string {
  const up = `npm run deploy -- up${stackName === "home" ? "" : ` --stack ${stackName}`}`;
  const next = isFine
    ? `npx pulumi up --stack ${stackName}, or ${up}`
    : `fix the problems, check again with npx hearth doctor --hosts --stack ${stackName}, then ${up}`;
  return `Pulumi.${stackName}.yaml is saved with encrypted secrets. Next: ${next}`;
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
    QUESTIONS.map(({ flag }) => [flag, { type: "string" as const }]),
  );
  try {
    return parseArgs({
      options: {
        ...options,
        stack: { type: "string" },
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
