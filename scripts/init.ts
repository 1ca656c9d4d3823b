import { parseArgs } from "node:util";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { intro, isCancel, log, outro, password, text } from "@clack/prompts";
import { secretFields } from "../infra/config-schema.ts";
import { readConfig, type HearthConfig } from "../infra/config.ts";
import { inProject } from "../infra/project-files.ts";
import { openStack } from "./deploy-stack.ts";
import { checkHosts } from "./host-checks/check-hosts.ts";
import { sentenceOf } from "./host-checks/finding.ts";
import {
  makeSecrets,
  questions,
  settingsOf,
  type Question,
} from "./init-questions.ts";

const usage = `usage: npm run init -- [--stack home] [answers] [--yes] [--skip-checks]

Makes the stack's configuration: asks for the two hosts, makes every secret, writes Pulumi.<stack>.yaml with the secrets
encrypted, and looks at both hosts. What is already set is kept. Every answer can be a flag:

${questions.map(({ flag, ask }) => `  --${flag.padEnd(16)} ${ask}`).join("\n")}
  --provider-key     NAME=KEY of a cloud provider, e.g. OPENAI_API_KEY=…; may be repeated (others see it: better asked for)
  --yes              ask nothing: take flags and defaults
  --skip-checks      do not look at the hosts

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
  if (asking) intro("Hearth on two hosts");
  const stackName = String(flags.stack ?? "home");
  await providePassphrase(asking);
  const answers: Record<string, string> = {};
  for (const question of questions)
    answers[question.flag] = await answerTo(question, flags, answers, asking);
  const providerKeys = await askProviderKeys(flags, asking);
  clearExample(stackName);
  const stack = await openStack({ stackName });
  const known = await stack.getAllConfig();
  const wanted = {
    ...settingsOf(answers),
    ...(Object.keys(providerKeys).length === 0
      ? {}
      : { providerKeys: JSON.stringify(providerKeys) }),
  };
  const settings: Readonly<Record<string, string>> = {
    ...makeSecrets(),
    ...wanted,
    // A second run keeps what is there: new secrets would lock the stack out of its own data.
    ...Object.fromEntries(
      Object.entries(known)
        .filter(([key]) => key.startsWith("hearth:"))
        .map(([key, { value }]) => [key.slice("hearth:".length), value])
        .filter(([key]) => key !== undefined && !(key in wanted)),
    ),
  };
  const read = readConfig({
    values: settings,
    isSecret: (key) => secretFields.includes(key),
  });
  if (!read.ok) {
    for (const error of read.errors) process.stderr.write(`hearth: ${error}\n`);
    return 1;
  }
  await stack.setAllConfig(
    Object.fromEntries(
      Object.entries(settings).flatMap(([key, value]) =>
        leaves(`hearth:${key}`, value).map(([path, leaf]) => [
          path,
          { value: leaf, secret: secretFields.includes(key) },
        ]),
      ),
    ),
    // As `pulumi config set --path` writes them, so that each can be changed with it.
    true,
  );
  const wrong =
    flags["skip-checks"] === true
      ? []
      : (await lookAtHosts(read.config)).filter(({ ok }) => !ok);
  for (const finding of wrong)
    process.stderr.write(`hearth: ${sentenceOf(finding)}\n`);
  const next =
    wrong.length === 0
      ? "npx pulumi up, or npm run deploy -- up"
      : `mend what is wrong, look again with npx hearth doctor --hosts --stack ${stackName}, then npm run deploy -- up`;
  const done = `Pulumi.${stackName}.yaml is written, its secrets encrypted. Next: ${next}`;
  if (asking) outro(done);
  else process.stdout.write(`${done}\n`);
  return wrong.length === 0 ? 0 : 1;
}

function lookAtHosts(config: HearthConfig): ReturnType<typeof checkHosts> {
  process.stderr.write(
    "looking at both hosts; the first time, each pulls the base image …\n",
  );
  return checkHosts(config);
}

function readArguments() {
  const options = Object.fromEntries(
    questions.map(({ flag }) => [flag, { type: "string" as const }]),
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
    }).values as Readonly<
      Record<string, string | boolean | readonly string[] | undefined>
    >;
  } catch (error) {
    process.stderr.write(`hearth: ${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

async function providePassphrase(asking: boolean): Promise<void> {
  const { PULUMI_CONFIG_PASSPHRASE, PULUMI_CONFIG_PASSPHRASE_FILE } =
    process.env;
  if ((PULUMI_CONFIG_PASSPHRASE ?? PULUMI_CONFIG_PASSPHRASE_FILE) !== undefined)
    return;
  if (!asking)
    throw new Error(
      "the secrets need a passphrase: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE.",
    );
  process.env["PULUMI_CONFIG_PASSPHRASE"] = given(
    await password({
      message:
        "A passphrase for the stack's secrets (keep it: nothing opens them without)",
    }),
  );
}

async function answerTo(
  question: Question,
  flags: Readonly<Record<string, unknown>>,
  answers: Readonly<Record<string, string>>,
  asking: boolean,
): Promise<string> {
  const flag = flags[question.flag];
  if (typeof flag === "string") return flag;
  const initial = question.initial(answers);
  if (!asking) return initial;
  return given(
    await text({ message: question.ask, initialValue: initial }),
  ).trim();
}

async function askProviderKeys(
  flags: Readonly<Record<string, unknown>>,
  asking: boolean,
): Promise<Readonly<Record<string, string>>> {
  const keys = Object.fromEntries(
    ((flags["provider-key"] ?? []) as readonly string[]).map((pair) => {
      const [name = "", ...rest] = pair.split("=");
      return [name, rest.join("=")];
    }),
  );
  if (asking)
    for (const name of [
      "OPENAI_API_KEY",
      "ANTHROPIC_API_KEY",
      "GEMINI_API_KEY",
    ]) {
      if (name in keys) continue;
      const key = given(
        await password({ message: `${name} (empty: none yet)` }),
      );
      if (key !== "") keys[name] = key;
    }
  return keys;
}

/** The paths and values of a setting; objects and lists come as JSON. */
function leaves(path: string, text: string): readonly [string, string][] {
  if (!/^[[{]/.test(text)) return [[path, text]];
  const value = JSON.parse(text) as unknown;
  return Object.entries(value as object).flatMap(([step, each]) =>
    leaves(
      Array.isArray(value) ? `${path}[${step}]` : `${path}.${step}`,
      typeof each === "string" ? each : JSON.stringify(each),
    ),
  );
}

function given(answer: string | symbol): string {
  if (isCancel(answer)) throw new Error("stopped; nothing was written.");
  return String(answer);
}

/** The shipped Pulumi.home.yaml is an example without secrets; the operator's own takes its place. */
function clearExample(stackName: string): void {
  const file = inProject(`Pulumi.${stackName}.yaml`);
  if (
    !existsSync(file) ||
    readFileSync(file, "utf8").includes("encryptionsalt")
  )
    return;
  log.info(`The example in Pulumi.${stackName}.yaml is replaced.`);
  rmSync(file);
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
