import { installationOfSupervisor } from "../../core/installation.ts";
import { executeSync } from "../../core/execute.ts";
import { fine, hint, wrong, type Finding } from "../../core/finding.ts";
import type { Home } from "../home/home.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { sentencesOf } from "../../core/failure.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { findOffsite, setUpCommand } from "./settings.ts";

/** Shown while no backup leaves this machine or both hosts, with the command that sets up off-site backups. */
export interface OffsiteWarning {
  readonly text: string;
  readonly command: string;
}

/** Undefined if there is an off-site target, or if another supervisor runs the jobs. */
export function offsiteWarning(
  home: Home,
  env: Environment,
): OffsiteWarning | undefined {
  try {
    if (!jobsAreOn(env) || findOffsite(home, env) !== undefined) {
      return undefined;
    }
  } catch (error) {
    return { text: sentencesOf(error).join(" "), command: setUpCommand(env) };
  }
  const lost =
    readVariable("HEARTH_PEER_URL", env) === undefined
      ? "If this machine is lost, its backups are lost with it."
      : "If both hosts are lost, the backups are lost with them.";
  return {
    text: `There are no off-site backups. ${lost}`,
    command: setUpCommand(env),
  };
}

/** The same for `hearth doctor`, and whether rclone is installed. */
export function probeOffsite(home: Home, env: Environment): readonly Finding[] {
  // Outside of containers, jobs run in the same process.
  const jobs =
    installationOfSupervisor(env) === "embedded" ? { HEARTH_JOBS: "on" } : {};
  const warning = offsiteWarning(home, { ...env, ...jobs });
  if (warning !== undefined) {
    return [hint("offsite", lowered(warning.text), warning.command)];
  }
  if (!jobsAreOn({ ...env, ...jobs })) {
    return [];
  }
  const rclone = executeSync("rclone", ["version"], { env });
  if (rclone.ok) {
    return [
      fine(
        "offsite",
        "off-site backups have a target, and rclone is installed",
      ),
    ];
  }
  return [
    rclone.startError === "ENOENT"
      ? wrong(
          "offsite",
          "off-site backups have a target, but rclone is not installed",
          "apt install rclone",
        )
      : wrong(
          "offsite",
          `off-site backups have a target, but rclone fails: ${rclone.reason}`,
          "rclone version",
        ),
  ];
}

function lowered(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1).replace(/\.$/, "")}`;
}
