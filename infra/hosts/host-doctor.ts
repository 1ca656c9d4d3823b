import { existsSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs, styleText } from "node:util";
import { DEFAULT_STACK, withStackFlag } from "../../core/stack-flag.ts";
import { readHostSettings } from "../config/config.ts";
import { checkHosts } from "./check-hosts.ts";
import type { Finding } from "./finding.ts";
import { QUESTIONS, withAnswers } from "./init-questions.ts";
import { readStackFile, stackFile } from "../config/stack-file.ts";

const usage = `usage: hearth doctor --hosts [--stack home] [--file Pulumi.home.yaml] [--json] [answers]

Checks both hosts from this machine, before or after an up: ssh, Docker, memory, disk, clock, addresses, ports, and whether containers of
each host reach the other host and the local model runners. Requires neither a running supervisor nor the passphrase; starts
small containers and removes them. Reads the stack's configuration; options take precedence:

${QUESTIONS.map(({ flag, ask }) => `  --${flag.padEnd(12)} ${ask}`).join("\n")}

Exit codes: 0 healthy, 1 problems found, 2 usage error

example: hearth doctor --hosts --json
`;

/** A mistake in the command line or in the stack's configuration. */
class UsageError extends Error {}

async function main(): Promise<number> {
  const flags = readArguments();
  if (flags["help"] === true) {
    process.stdout.write(usage);
    return 0;
  }
  const settings = readSettings(flags);
  const forStack = (text: string) =>
    withStackFlag(text, String(flags["stack"]));
  if (settings["runtime"] === "kubernetes") {
    throw new UsageError(
      forStack(
        `${basename(fileOf(flags))} is a stack on Kubernetes, which has no hosts to check: \`npm run deploy -- preview\` checks its settings`,
      ),
    );
  }
  const read = readHostSettings(settings);
  if (!read.ok) {
    throw new UsageError(forStack(read.errors.join("\n")));
  }
  const findings = (await checkHosts(read.config)).map((finding) => ({
    ...finding,
    fix: finding.fix === null ? null : forStack(finding.fix),
  }));
  const ok = findings.every((finding) => finding.ok);
  process.stdout.write(
    flags["json"] === true
      ? `${JSON.stringify({ ok, findings: findings.map(asJson) }, null, 2)}\n`
      : describe(findings),
  );
  return ok ? 0 : 1;
}

/** `mend` is the name of `fix` in earlier releases. */
function asJson(finding: Finding): Finding & { readonly mend: string | null } {
  return { ...finding, mend: finding.fix };
}

type Flags = Readonly<Record<string, string | boolean | undefined>>;

function readArguments(): Flags {
  const answers = Object.fromEntries(
    QUESTIONS.map(({ flag }) => [flag, { type: "string" as const }]),
  );
  try {
    return parseArgs({
      options: {
        ...answers,
        hosts: { type: "boolean" },
        stack: { type: "string", default: DEFAULT_STACK },
        file: { type: "string" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new UsageError(
      `${(error as Error).message.split("\n")[0]} (run \`hearth doctor --hosts --help\` for the options)`,
    );
  }
}

/** The settings of the stack's file, overridden by the options of the command line. */
function readSettings(flags: Flags): Readonly<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const { flag } of QUESTIONS) {
    const answer = flags[flag];
    if (typeof answer === "string") {
      answers[flag] = answer;
    }
  }
  const answered = Object.keys(answers).length > 0;
  const written = readWritten(fileOf(flags), answered);
  return answered ? withAnswers(written, answers) : written;
}

function fileOf(flags: Flags): string {
  return typeof flags["file"] === "string"
    ? flags["file"]
    : stackFile(String(flags["stack"]));
}

function readWritten(
  file: string,
  mayBeMissing: boolean,
): Readonly<Record<string, string>> {
  if (existsSync(file)) {
    return readStackFile(file);
  }
  if (mayBeMissing) {
    return {};
  }
  throw new UsageError(
    `${file} not found: create it with \`npm run init\`, or name the hosts with options (--help)`,
  );
}

function describe(findings: readonly Finding[]): string {
  return (["a", "b"] as const)
    .map((name) => {
      const lines = findings
        .filter(({ host }) => host === name)
        .map(({ ok, text, fix }) => {
          const mark = styleText(ok ? "green" : "red", ok ? "✓" : "✕", {
            stream: process.stdout,
          });
          return `  ${mark} ${text}${fix === null ? "" : `\n      → ${fix}`}\n`;
        });
      return `host ${name.toUpperCase()}\n${lines.join("")}`;
    })
    .join("");
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    const { message } = error as Error;
    for (const line of message.split("\n")) {
      process.stderr.write(`hearth: ${line}\n`);
    }
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
