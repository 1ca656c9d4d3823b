import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  locateHome,
  createHome,
  projectRoot,
  type Home,
} from "../supervisor/home/home.ts";
import {
  linkedRelease,
  ownRelease,
  releasesOf,
  selectRelease,
} from "../supervisor/release/release.ts";
import { planForUser, prepareAsUser } from "../embedded/service/for-user.ts";
import {
  findServiceManager,
  type ServiceManager,
} from "../embedded/service/service-manager.ts";
import { findServiceUser } from "../embedded/service/service-user.ts";
import {
  plainSettingsOf,
  type ServicePlan,
} from "../embedded/service/unit-files.ts";
import { Failure } from "../core/failure.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const install = defineVerb({
  name: "service install",
  description: "Start Hearth now and at every boot; with sudo, before sign-in.",
  example: "hearth service install",
  args: {
    user: {
      type: "string",
      description: "As root: run as this user (default: the caller of sudo)",
      valueHint: "name",
    },
    print: {
      type: "boolean",
      description: "Print the unit file instead of installing it",
    },
    prepare: {
      type: "boolean",
      description:
        "Only prepare the data directory; run by root as the service's user",
    },
    ...jsonArg,
  },
  run: async ({ user: requested, print: onlyPrint, prepare, json }) => {
    if (prepare) {
      prepareHome(locateHome());
      return 0;
    }
    const manager = serviceManager();
    const user = isRoot() ? findServiceUser(requested, process.env) : undefined;
    if (user === undefined && requested !== undefined) {
      throw new Failure(
        `only root can install a service for another user: run \`sudo npx hearth service install --user ${requested}\`, or omit --user.`,
      );
    }
    const plan =
      user === undefined
        ? planHere()
        : planForUser(user, checkout(), process.env);
    if (onlyPrint) {
      const file = manager.fileFor(plan).trimEnd();
      printAnswer(json, { path: manager.path, file }, file);
      return 0;
    }
    if (user === undefined) {
      prepareHome(locateHome());
    } else {
      prepareAsUser(user, plan, checkout(), manager.path);
    }
    const hints = manager.install(plan);
    const installed = `Service installed (${manager.path}); Hearth is starting and will start at every boot. Run \`hearth status\` for its state.`;
    printAnswer(
      json,
      { path: manager.path, ...manager.status(), hints },
      [installed, ...hints].join("\n"),
    );
    return 0;
  },
});

const remove = defineVerb({
  name: "service remove",
  description: "Stop Hearth and no longer start it at boot; data is kept.",
  example: "hearth service remove",
  args: { ...jsonArg },
  run: async ({ json }) => {
    const manager = serviceManager();
    const removed = manager.remove();
    printAnswer(
      json,
      { removed, path: manager.path },
      removed
        ? "Service removed; Hearth stopped and no longer starts at boot. Keys, spend and notes are kept."
        : `Nothing to remove: ${manager.path} not found.`,
    );
    return 0;
  },
});

const status = defineVerb({
  name: "service status",
  description: "Show whether Hearth is installed and running as a service.",
  example: "hearth service status",
  args: { ...jsonArg },
  run: async ({ json }) => {
    const manager = serviceManager();
    const state = manager.status();
    printAnswer(
      json,
      { manager: manager.name, path: manager.path, ...state },
      state.installed
        ? `Service of ${manager.name}: ${state.words}, ${state.atBoot ? "starts" : "does not start"} at boot (${manager.path}).`
        : "Not installed as a service. Run `hearth service install` to start Hearth at every boot.",
    );
    return state.installed && state.running ? 0 : 1;
  },
});

export const service: Verb = {
  name: "service",
  description: "Start Hearth at every boot.",
  example: "hearth service install",
  verbs: {
    install: async () => install,
    remove: async () => remove,
    status: async () => status,
  },
};

function serviceManager(): ServiceManager {
  return findServiceManager(isRoot());
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The directory of the checkout; for a release, the one it was created from. */
function checkout(): string {
  return process.env["HEARTH_CHECKOUT"] ?? locateHome().checkout;
}

/** The unit contains no release: each start runs the one that `releases/current` points to. */
function planHere(): ServicePlan {
  const home = locateHome();
  const own = ownRelease();
  const current = join(releasesOf(home), "current");
  return {
    node:
      own === undefined
        ? process.execPath
        : join(current, "node_modules", "node", "bin", "node"),
    project: own === undefined ? projectRoot : current,
    home: home.root,
    settings: plainSettingsOf(process.env),
    user: undefined,
  };
}

/** Prepares the first start; run by the user of the service. */
function prepareHome(home: Home): void {
  const own = ownRelease();
  if (own !== undefined && linkedRelease(home, "current") === undefined) {
    selectRelease(home, own.id);
  }
  createHome(home);
  createEnvironmentFile(join(home.root, "service.env"));
}

/** Provider keys of a service: the unit file must not contain secrets. */
function createEnvironmentFile(path: string): void {
  if (existsSync(path)) {
    return;
  }
  writeFileSync(
    path,
    "# Read when Hearth starts at boot; only you can read it. One variable per line, for example:\n# OPENAI_API_KEY=sk-…\n",
    { mode: 0o600 },
  );
}
