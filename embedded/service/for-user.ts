import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../../supervisor/home/home.ts";
import {
  findHomeRoot,
  namedHomeRoot,
} from "../../supervisor/home/home-root.js";
import { executeSync } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";
import { privateGroupOf, type ServiceUser } from "./service-user.ts";
import { checkOnlyTrustedWrite } from "./trusted-files.ts";
import { plainSettingsOf, type ServicePlan } from "./unit-files.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The plan by which root starts Hearth as a user, from the releases in that user's home. */
export function planForUser(
  user: ServiceUser,
  checkout: string,
  env: Environment,
): ServicePlan {
  // Root's own home does not apply to another user.
  const named = namedHomeRoot(checkout, env);
  const home = findHomeRoot(checkout, { HEARTH_HOME: named }, user.home);
  const project = join(home, "releases", "current");
  return {
    node: join(project, "node_modules", "node", "bin", "node"),
    project,
    home,
    settings: plainSettingsOf(env),
    user: user.name,
  };
}

/**
 * Checks that only root and trusted users can write what root and the service run, and creates the release and the home as
 * the service's user: root must not write where that user could place a link.
 */
export function prepareAsUser(
  user: ServiceUser,
  plan: ServicePlan,
  checkout: string,
  installed: string,
): void {
  checkCode(checkout);
  checkSameHome(user, plan, installed);
  const prepared = executeSync(
    process.execPath,
    [join(checkout, "bin", "hearth.js"), "service", "install", "--prepare"],
    {
      uid: user.uid,
      gid: user.gid,
      cwd: "/",
      stdout: "inherit",
      env: {
        HOME: user.home,
        USER: user.name,
        LOGNAME: user.name,
        PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
        HEARTH_HOME: plan.home,
      },
    },
  );
  if (!prepared.ok || !existsSync(plan.node)) {
    throw new Failure([
      ...(prepared.stderr.trim() || prepared.reason).split("\n").slice(-3),
      `user ${user.name} cannot install a release of ${checkout} in ${plan.home}: move the checkout to where that user can read it, for example /opt, or specify another user with --user.`,
    ]);
  }
}

/** Checks the checkout, and the release that runs this command if it is one. */
function checkCode(checkout: string): void {
  const caller = process.env["SUDO_USER"];
  const names = caller === undefined || caller === "" ? [] : [caller];
  const callerId = Number(process.env["SUDO_UID"] ?? Number.NaN);
  const trusted = {
    users: new Set([0, callerId].filter(Number.isInteger)),
    groups: new Set([
      0,
      ...names.flatMap((name) => privateGroupOf(name) ?? []),
    ]),
  };
  checkOnlyTrustedWrite(checkout, trusted);
  if (projectRoot !== checkout) {
    checkOnlyTrustedWrite(projectRoot, trusted);
  }
}

/** The service of an earlier version ran as root, on root's data: without that data this one would start empty. */
function checkSameHome(
  user: ServiceUser,
  plan: ServicePlan,
  installed: string,
): void {
  if (!existsSync(installed)) {
    return;
  }
  const unit = readFileSync(installed, "utf8");
  const before = /HEARTH_HOME(?:=|<\/key><string>)([^"<\n]+)/
    .exec(unit)?.[1]
    ?.replaceAll("%%", "%");
  if (before === undefined || before === plan.home) {
    return;
  }
  throw new Failure(
    `the installed service has its data in ${before}, this one would use ${plan.home}. Run \`hearth service remove\`, then move the data there and make ${user.name} its owner (docs/operate.md, "Starting at boot"), or keep the directory with HEARTH_HOME=${before}.`,
  );
}
