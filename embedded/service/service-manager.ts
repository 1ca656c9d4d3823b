import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { executeSync } from "../../core/execute.ts";
import { Failure, sentencesOf } from "../../core/failure.ts";
import {
  LAUNCHD_LABEL,
  launchdPlist,
  systemdUnit,
  UNIT_NAME,
  type ServicePlan,
} from "./unit-files.ts";

/** The program that starts services at boot on this machine. */
export interface ServiceManager {
  readonly name: "systemd" | "launchd";
  /** The service's file. */
  readonly path: string;
  /** The text of the file for a plan. */
  readonly fileFor: (plan: ServicePlan) => string;
  /** Installs the file and starts the service now and at every boot; returns notes for the operator. */
  readonly install: (plan: ServicePlan) => readonly string[];
  /** Stops the service and removes the file; false if there was none. */
  readonly remove: () => boolean;
  readonly status: () => ServiceStatus;
}

interface ServiceStatus {
  readonly installed: boolean;
  readonly running: boolean;
  readonly atBoot: boolean;
  /** The manager's own description. */
  readonly words: string;
}

/** Starting the service may include the installation of a release. */
const PROGRAM_WITHIN_MS = 240_000;

type Run = (
  program: string,
  args: readonly string[],
) => { readonly ok: boolean; readonly output: string };

/** systemd or launchd, for the whole machine when `system`, otherwise for this user. Throws a Failure if neither is available. */
export function findServiceManager(
  system: boolean,
  platform: NodeJS.Platform = process.platform,
  run: Run = runProgram,
): ServiceManager {
  switch (platform) {
    case "linux":
      return systemd(system, run);
    case "darwin":
      return launchd(system, run);
    default:
      throw new Failure(
        `services can be installed with systemd and launchd, but this is ${platform}: have this system's own service manager run \`hearth up --detach\`.`,
      );
  }
}

function systemd(system: boolean, run: Run): ServiceManager {
  const scope = system ? [] : ["--user"];
  const path = system
    ? join("/etc/systemd/system", UNIT_NAME)
    : join(homedir(), ".config", "systemd", "user", UNIT_NAME);
  const systemctl = (...args: readonly string[]) =>
    run("systemctl", [...scope, ...args]);
  return {
    name: "systemd",
    path,
    fileFor: systemdUnit,
    install: (plan) => {
      if (!existsSync("/run/systemd/system")) {
        throw new Failure(
          "this machine does not use systemd. Run `hearth service install --print` to print the unit for another machine.",
        );
      }
      putFile(path, systemdUnit(plan));
      mustSucceed(systemctl("daemon-reload"), "systemctl daemon-reload");
      mustSucceed(
        systemctl("enable", "--now", UNIT_NAME),
        "systemctl enable --now",
      );
      if (system) {
        return [];
      }
      // Without it a user's services start at the first sign-in and end with the last session.
      const { username } = userInfo();
      return run("loginctl", ["enable-linger", username]).ok
        ? []
        : [
            `to start it at boot and not only when you sign in: sudo loginctl enable-linger ${username}`,
          ];
    },
    remove: () => {
      if (!existsSync(path)) {
        return false;
      }
      mustSucceed(
        systemctl("disable", "--now", UNIT_NAME),
        "systemctl disable --now",
      );
      rmSync(path);
      systemctl("daemon-reload");
      return true;
    },
    status: () => ({
      installed: existsSync(path),
      running: systemctl("is-active", "--quiet", UNIT_NAME).ok,
      atBoot: systemctl("is-enabled", "--quiet", UNIT_NAME).ok,
      words: systemctl("is-active", UNIT_NAME).output,
    }),
  };
}

function launchd(system: boolean, run: Run): ServiceManager {
  const directory = system
    ? "/Library/LaunchDaemons"
    : join(homedir(), "Library", "LaunchAgents");
  const path = join(directory, `${LAUNCHD_LABEL}.plist`);
  const domain = system ? "system" : `gui/${userInfo().uid}`;
  const target = `${domain}/${LAUNCHD_LABEL}`;
  return {
    name: "launchd",
    path,
    fileFor: launchdPlist,
    install: (plan) => {
      run("launchctl", ["bootout", target]);
      putFile(path, launchdPlist(plan));
      mustSucceed(
        run("launchctl", ["bootstrap", domain, path]),
        "launchctl bootstrap",
      );
      return system
        ? []
        : [
            "it starts when you sign in; `sudo npx hearth service install` starts it at boot.",
          ];
    },
    remove: () => {
      if (!existsSync(path)) {
        return false;
      }
      run("launchctl", ["bootout", target]);
      rmSync(path);
      return true;
    },
    status: () => {
      const { ok, output } = run("launchctl", ["print", target]);
      const running = /state = running/.test(output);
      const installed = existsSync(path);
      const words = !ok ? "not loaded" : running ? "running" : "not running";
      return { installed, running, atBoot: installed, words };
    },
  };
}

function putFile(path: string, text: string): void {
  if (existsSync(path) && readFileSync(path, "utf8") === text) {
    return;
  }
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode: 0o644 });
  } catch (error) {
    throw new Failure(sentencesOf(error, path), error);
  }
}

function mustSucceed({ ok, output }: ReturnType<Run>, command: string): void {
  if (!ok) {
    throw new Failure(
      `${command} failed (${output === "" ? "no output" : output}): fix that, then run the command again.`,
    );
  }
}

function runProgram(program: string, args: readonly string[]) {
  const { ok, stdout, stderr, reason } = executeSync(program, args, {
    timeoutMs: PROGRAM_WITHIN_MS,
  });
  return { ok, output: `${stdout}${stderr}`.trim() || reason };
}
