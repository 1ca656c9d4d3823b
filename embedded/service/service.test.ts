import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { projectRoot } from "../../supervisor/home/home.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { findServiceManager } from "./service-manager.ts";
import {
  launchdPlist,
  plainSettingsOf,
  systemdUnit,
  UNIT_NAME,
  type ServicePlan,
} from "./unit-files.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

const secretEnvironment = {
  HEARTH_SUPERVISOR_PORT: "4090",
  OPENAI_API_KEY_FILE: "/keys/openai",
  OPENAI_API_KEY: "s3cret",
  HEARTH_OPERATOR_PASSWORD: "s3cret",
  HEARTH_PEER_URL: "http://operator:s3cret@b:4080",
  REDIS_PASSWORD: "s3cret",
  PATH: "/bin",
};

function plan(change: Partial<ServicePlan> = {}): ServicePlan {
  return {
    node: process.execPath,
    project: projectRoot,
    home: place.home.root,
    settings: plainSettingsOf(secretEnvironment),
    user: "daemon",
    ...change,
  };
}

test("a unit contains settings and never secrets", () => {
  expect(plan().settings).toEqual({
    HEARTH_SUPERVISOR_PORT: "4090",
    OPENAI_API_KEY_FILE: "/keys/openai",
  });
  for (const text of [systemdUnit(plan()), launchdPlist(plan())]) {
    expect(text).toContain("4090");
    expect(text).not.toContain("s3cret");
  }
});

test("a crashed service is restarted while its processes continue, and leaves no memory on the disk; a requested stop is final", () => {
  const unit = systemdUnit(plan());
  expect(unit).toContain("Restart=on-failure\n");
  expect(unit).toContain("KillMode=process\n");
  expect(unit).toContain("LimitCORE=0\n");
  expect(unit).toContain("WantedBy=multi-user.target\n");
  expect(systemdUnit(plan({ user: undefined }))).toContain(
    "WantedBy=default.target\n",
  );
});

/** Runs systemd-analyze on a unit; without it these tests would show nothing, so they fail and say what to install. */
function analyze(unit: string, ...words: readonly string[]) {
  const path = join(place.directory, UNIT_NAME);
  writeFileSync(path, unit);
  const { error, status, stdout, stderr } = spawnSync(
    "systemd-analyze",
    [...words, path],
    { encoding: "utf8" },
  );
  if (error !== undefined) {
    throw new Error(
      `systemd-analyze does not run (${error.message}): apt-get install systemd`,
    );
  }
  return { status, stdout, stderr };
}

const onLinux = test.runIf(process.platform === "linux");

onLinux.each([
  ["plain", "daemon"],
  ["plain", undefined],
  ['with space, "quote", $dollar and 100%', "daemon"],
] as const)(
  "systemd reads the unit correctly in a directory called %s, for user %s",
  (name, user) => {
    const home = join(place.directory, name);
    mkdirSync(join(home, "logs"), { recursive: true });
    const unit = systemdUnit(plan({ home, user }));
    const { status, stderr } = analyze(
      unit,
      "verify",
      "--recursive-errors=no",
      "--man=no",
    );
    const complaints = stderr
      .split("\n")
      .filter((line) => line.includes(UNIT_NAME));
    expect(complaints).toEqual([]);
    expect(status).toBe(0);
  },
);

onLinux("systemd finds little that the machine's unit leaves open", () => {
  const security = (unit: string) =>
    analyze(unit, "security", "--offline=true", "--threshold=40").status;
  const unit = systemdUnit(plan());
  expect(unit).toContain("\nUser=daemon\n");
  expect(security(unit)).toBe(0);
  expect(security(unit.replace(/^(Protect|Restrict|NoNew|Cap).*$/gm, ""))).toBe(
    1,
  );
});

onLinux("the unit's command starts Node with its log in the home", () => {
  const home = join(place.directory, 'a "b" $HOME');
  mkdirSync(join(home, "logs"), { recursive: true });
  const project = join(place.directory, "project");
  mkdirSync(join(project, "supervisor"), { recursive: true });
  writeFileSync(
    join(project, "supervisor", "main.ts"),
    "console.log(`runs with ${process.env.FROM_FILE}`);",
  );
  writeFileSync(join(home, "service.env"), "FROM_FILE=a secret\n");
  const unit = systemdUnit(plan({ home, project }));
  const command = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? "";
  // As systemd reads it: words in double quotes, `$$` for a dollar.
  const words = [...command.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) =>
    (word ?? "").replace(/\\(.)/g, "$1").replaceAll("$$", "$"),
  );
  const [program = "", ...args] = words;
  spawnSync(program, args, { env: { HEARTH_HOME: home } });
  expect(readFileSync(join(home, "logs", "supervisor.log"), "utf8")).toBe(
    "runs with a secret\n",
  );
});

test("the property list is well formed for any path", () => {
  const plist = launchdPlist(plan({ home: "/Users/a & b/<hearth>" }));
  expect(plist).toContain(
    "/Users/a &amp; b/&lt;hearth&gt;/logs/supervisor.log",
  );
  expect(plist).toContain(
    "<string>--env-file-if-exists=/Users/a &amp; b/&lt;hearth&gt;/service.env</string>",
  );
  const names = [...plist.matchAll(/<(\/?)([a-z]+)(\/?)(?: [^>]*)?>/g)];
  const open: string[] = [];
  for (const [, closes, name = "", empty] of names) {
    if (closes === "/") {
      expect(open.pop()).toBe(name);
    } else if (empty === "") {
      open.push(name);
    }
  }
  expect(open).toEqual([]);
});

test("launchd loads the property list, and its errors are quoted", () => {
  const commands: string[] = [];
  const manager = findServiceManager(false, "darwin", (program, args) => {
    commands.push([program, ...args].join(" "));
    return { ok: true, output: "state = running" };
  });
  expect(manager.status()).toMatchObject({ installed: false, running: true });
  expect(commands).toEqual([
    `launchctl print gui/${process.getuid?.()}/org.hearth.supervisor`,
  ]);
  expect(() => findServiceManager(true, "win32")).toThrow(
    "services can be installed with systemd and launchd, but this is win32",
  );
});
