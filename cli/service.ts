import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  locateHome,
  makeHome,
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
import { print } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

const json = { type: "boolean", description: "Print it as JSON" } as const;

const install = defineVerb({
  name: "service install",
  description:
    "Start Hearth at every boot, and now; with sudo, before sign-in.",
  example: "hearth service install",
  args: {
    user: {
      type: "string",
      description: "As root: run as this user, if not as sudo's caller",
      valueHint: "name",
    },
    print: {
      type: "boolean",
      description: "Only print the file that would be installed",
    },
    prepare: {
      type: "boolean",
      description:
        "Only make what the service needs; root runs this as its user",
    },
    json,
  },
  run: async ({ user: asked, print: onlyPrint, prepare, json }) => {
    if (prepare) {
      prepareHome(locateHome());
      return 0;
    }
    const manager = serviceManager();
    const user = isRoot() ? findServiceUser(asked, process.env) : undefined;
    if (user === undefined && asked !== undefined) {
      throw new Failure(
        `only root can install a service that runs as another user: \`sudo npx hearth service install --user ${asked}\`, or leave --user out.`,
      );
    }
    const plan =
      user === undefined
        ? planHere()
        : planForUser(user, checkout(), process.env);
    if (onlyPrint) {
      print(manager.fileFor(plan).trimEnd());
      return 0;
    }
    if (user === undefined) {
      prepareHome(locateHome());
    } else {
      prepareAsUser(user, plan, checkout(), manager.path);
    }
    const hints = manager.install(plan);
    if (json) {
      print(
        JSON.stringify(
          { path: manager.path, ...manager.status(), hints },
          null,
          2,
        ),
      );
    } else {
      print(
        `Hearth starts at boot from now on, and is starting: \`hearth status\` shows it. (${manager.path})`,
      );
      hints.forEach(print);
    }
    return 0;
  },
});

const remove = defineVerb({
  name: "service remove",
  description: "Stop Hearth and start it at boot no more; data stays.",
  example: "hearth service remove",
  args: { json },
  run: async ({ json }) => {
    const manager = serviceManager();
    const removed = manager.remove();
    if (json) {
      print(JSON.stringify({ removed, path: manager.path }, null, 2));
    } else {
      print(
        removed
          ? "Hearth is stopped and starts at boot no more; keys, spend and notes are kept."
          : `Nothing to remove: there is no ${manager.path}.`,
      );
    }
    return 0;
  },
});

const status = defineVerb({
  name: "service status",
  description: "Show whether Hearth starts at boot, and runs as a service.",
  example: "hearth service status",
  args: { json },
  run: async ({ json }) => {
    const manager = serviceManager();
    const seen = manager.status();
    if (json) {
      print(
        JSON.stringify(
          { manager: manager.name, path: manager.path, ...seen },
          null,
          2,
        ),
      );
    } else if (!seen.installed) {
      print(
        "Hearth is no service here: `hearth service install` starts it at every boot.",
      );
    } else {
      print(
        `Hearth is a service of ${manager.name}: ${seen.words}, ${seen.atBoot ? "starts" : "does not start"} at boot. (${manager.path})`,
      );
    }
    return seen.installed && seen.running ? 0 : 1;
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

/** Where the command was started from; a release remembers where it was made from. */
function checkout(): string {
  return process.env["HEARTH_CHECKOUT"] ?? locateHome().checkout;
}

/** The unit names no release: each start runs the one that `releases/current` points to. */
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

/** What the first start needs; run by the user that the service runs as. */
function prepareHome(home: Home): void {
  const own = ownRelease();
  if (own !== undefined && linkedRelease(home, "current") === undefined) {
    selectRelease(home, own.id);
  }
  makeHome(home);
  makeEnvironmentFile(join(home.root, "service.env"));
}

/** Where keys of providers go for a service: no unit file holds a secret. */
function makeEnvironmentFile(path: string): void {
  if (existsSync(path)) {
    return;
  }
  writeFileSync(
    path,
    "# Read when Hearth starts at boot; only you can read it. One a line, for example:\n# OPENAI_API_KEY=sk-…\n",
    { mode: 0o600 },
  );
}
