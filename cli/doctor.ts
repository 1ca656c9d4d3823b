import { installationOfSupervisor } from "../core/installation.ts";
import { join } from "node:path";
import { executeSync, IN_TERMINAL } from "../core/execute.ts";
import type { Finding } from "../core/finding.ts";
import { probeDisk, probeFiles } from "./doctor/probe-files.ts";
import { probeHome } from "./doctor/probe-home.ts";
import {
  probePorts,
  probeRedis,
  probeRunners,
  probeServices,
  probeSettings,
} from "./doctor/probe-programs.ts";
import { probeInstances } from "./doctor/probe-instances.ts";
import { probeProviderKeys } from "./doctor/probe-provider-keys.ts";
import { probeRelease } from "./doctor/probe-release.ts";
import { probeOffsite } from "../supervisor/offsite/warning.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { paint, printAnswer, type Tone } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";
import { counted } from "../core/words.ts";

export const doctor: Verb = {
  ...defineVerb({
    name: "doctor",
    description: "Diagnose this machine; print a fix for each problem.",
    example: "hearth doctor",
    args: {
      hosts: {
        type: "boolean",
        description: "Examine both hosts of a deployment instead",
      },
      ...jsonArg,
    },
    run: async ({ json }) => {
      const findings = await examine();
      const ok = findings.every(({ level }) => level !== "wrong");
      printAnswer(
        json,
        { ok, findings: findings.map(asJson) },
        describeFindings(findings),
      );
      return ok ? 0 : 1;
    },
  }),
  // Has its own options and works while nothing of Hearth is running.
  takeOver: (words) =>
    words.includes("--hosts") ? runForHosts(words) : undefined,
};

/** `mend` is the name of `fix` in earlier releases. */
function asJson(finding: Finding): Finding & { readonly mend: string | null } {
  return { ...finding, mend: finding.fix };
}

async function examine(): Promise<readonly Finding[]> {
  const home = locateHome();
  const { env } = process;
  // In a container there are no ports or programs to examine, only the supervisor's files.
  if (installationOfSupervisor(env) !== "embedded") {
    return [
      await probeDisk(home),
      ...probeHome(home),
      ...probeOffsite(home, env),
      ...(await probeServices(home, env)),
      ...(await probeInstances(env)),
    ];
  }
  const findings = await Promise.all([
    probeServices(home, env),
    probePorts(home, env),
    probeRedis(env),
    probeRunners(env),
    probeProviderKeys(home, env),
    probeInstances(env),
  ]);
  const settings = await probeSettings(home, env);
  return [
    ...probeRelease(home),
    await probeDisk(home),
    ...probeFiles(home),
    ...probeOffsite(home, env),
    ...settings,
    ...findings.flat(),
  ];
}

const LEVELS: Readonly<
  Record<Finding["level"], { readonly sign: string; readonly tone: Tone }>
> = {
  wrong: { sign: "✕", tone: "bad" },
  hint: { sign: "▲", tone: "warn" },
  fine: { sign: "●", tone: "ok" },
};

/** The verdict, then problems with their fixes, hints, and what is fine; in each, findings of one subject follow each other. */
export function describeFindings(findings: readonly Finding[]): string {
  const of = (level: Finding["level"]) =>
    [
      ...Map.groupBy(
        findings.filter((finding) => finding.level === level),
        ({ subject }) => subject,
      ).values(),
    ].flat();
  const count = of("wrong").length;
  const verdict =
    count === 0
      ? "No problems found on this machine."
      : `${counted(count, "problem")} found on this machine.`;
  const lines = [...of("wrong"), ...of("hint"), ...of("fine")].flatMap(
    ({ subject, level, text, fix }) => {
      const { sign, tone } = LEVELS[level];
      return [
        `${paint(tone, sign)} ${paint("soft", subject.padEnd(9))} ${text}`,
        ...(fix === null ? [] : [`              ${fix}`]),
      ];
    },
  );
  return [paint("strong", verdict), "", ...lines].join("\n");
}

function runForHosts(words: readonly string[]): 0 | 1 | 2 {
  const { exitCode } = executeSync(
    process.execPath,
    [join(locateHome().checkout, "infra", "hosts", "host-doctor.ts"), ...words],
    IN_TERMINAL,
  );
  return exitCode === 0 || exitCode === 2 ? exitCode : 1;
}
