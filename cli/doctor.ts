import { join } from "node:path";
import { executeSync, IN_TERMINAL } from "../core/execute.ts";
import type { Finding } from "../core/finding.ts";
import { lookAtDisk, lookAtFiles } from "./doctor/look-at-files.ts";
import { lookAtHome } from "./doctor/look-at-home.ts";
import {
  lookAtPorts,
  lookAtRedis,
  lookAtRunners,
  lookAtServices,
  lookAtSettings,
} from "./doctor/look-at-programs.ts";
import { lookAtInstances } from "./doctor/look-at-instances.ts";
import { lookAtRelease } from "./doctor/look-at-release.ts";
import { lookAtOffsite } from "../supervisor/offsite/warning.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { paint, print, type Tone } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

export const doctor: Verb = {
  ...defineVerb({
    name: "doctor",
    description:
      "Say what is wrong on this machine, and the command that mends it.",
    example: "hearth doctor",
    args: {
      hosts: {
        type: "boolean",
        description: "Examine both hosts of a deployment instead",
      },
      json: { type: "boolean", description: "Print it as JSON" },
    },
    run: async ({ json }) => {
      const findings = await examine();
      const ok = findings.every(({ level }) => level !== "wrong");
      print(
        json ? JSON.stringify({ ok, findings }, null, 2) : describe(findings),
      );
      return ok ? 0 : 1;
    },
  }),
  // It has options of its own and works without anything of ours running.
  takeOver: (words) =>
    words.includes("--hosts") ? runForHosts(words) : undefined,
};

async function examine(): Promise<readonly Finding[]> {
  const home = locateHome();
  const { env } = process;
  // A container has no ports or programs of its own to examine, and only the supervisor's files.
  if (env["HEARTH_RUNTIME"] === "docker") {
    return [
      lookAtDisk(home),
      ...lookAtHome(home),
      ...lookAtOffsite(home, env),
      ...(await lookAtServices(home, env)),
      ...(await lookAtInstances(env)),
    ];
  }
  const asked = await Promise.all([
    lookAtServices(home, env),
    lookAtPorts(home, env),
    lookAtRedis(env),
    lookAtRunners(env),
    lookAtInstances(env),
  ]);
  const settings = await lookAtSettings(home, env);
  return [
    ...lookAtRelease(home),
    ...lookAtFiles(home),
    ...lookAtOffsite(home, env),
    ...settings,
    ...asked.flat(),
  ];
}

const looks: Readonly<
  Record<Finding["level"], { readonly sign: string; readonly tone: Tone }>
> = {
  wrong: { sign: "✕", tone: "bad" },
  hint: { sign: "▲", tone: "warn" },
  fine: { sign: "●", tone: "ok" },
};

/** The verdict, what is wrong with what mends it, hints, and what is fine. */
function describe(findings: readonly Finding[]): string {
  const of = (level: Finding["level"]) =>
    findings.filter((finding) => finding.level === level);
  const count = of("wrong").length;
  const verdict =
    count === 0
      ? "Nothing is wrong on this machine."
      : `${count} ${count === 1 ? "thing is" : "things are"} wrong on this machine.`;
  const lines = [...of("wrong"), ...of("hint"), ...of("fine")].flatMap(
    ({ subject, level, text, mend }) => {
      const { sign, tone } = looks[level];
      return [
        `${paint(tone, sign)} ${paint("soft", subject.padEnd(9))} ${text}`,
        ...(mend === null ? [] : [`              ${mend}`]),
      ];
    },
  );
  return [paint("strong", verdict), "", ...lines].join("\n");
}

function runForHosts(words: readonly string[]): 0 | 1 | 2 {
  const { exitCode } = executeSync(
    process.execPath,
    [join(locateHome().checkout, "infra", "hosts", "doctor.ts"), ...words],
    IN_TERMINAL,
  );
  return exitCode === 0 || exitCode === 2 ? exitCode : 1;
}
