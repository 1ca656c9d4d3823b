import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { projectRoot } from "../embedded/home.ts";
import { temporaryHome } from "../testing/temporary-home.ts";
import { findServiceManager } from "./service-manager.ts";
import {
  launchdPlist,
  plainSettingsOf,
  systemdUnit,
  unitName,
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
    system: true,
    ...change,
  };
}

test("settings go along, secrets never do", () => {
  expect(plan().settings).toEqual({
    HEARTH_SUPERVISOR_PORT: "4090",
    OPENAI_API_KEY_FILE: "/keys/openai",
  });
  for (const text of [systemdUnit(plan()), launchdPlist(plan())]) {
    expect(text).toContain("4090");
    expect(text).not.toContain("s3cret");
  }
});

test("a crash is started again and what ran serves on; a told stop stays", () => {
  const unit = systemdUnit(plan());
  expect(unit).toContain("Restart=on-failure\n");
  expect(unit).toContain("KillMode=process\n");
  expect(unit).toContain("WantedBy=multi-user.target\n");
  expect(systemdUnit(plan({ system: false }))).toContain(
    "WantedBy=default.target\n",
  );
});

// Where there is no systemd there is nobody to ask; the texts above are compared in any case.
const canVerify = spawnSync("systemd-analyze", ["--version"]).status === 0;

test.each(["plain", 'with space, "quote", $dollar and 100%'])(
  "systemd reads the unit as it is meant, in a directory called %s",
  (name) => {
    const home = join(place.directory, name);
    mkdirSync(join(home, "logs"), { recursive: true });
    const unit = systemdUnit(plan({ home }));
    const path = join(place.directory, unitName);
    writeFileSync(path, unit);
    expect(unit).toContain("[Service]\nType=exec\nExecStart=");
    if (!canVerify) return;
    const { status, stderr } = spawnSync(
      "systemd-analyze",
      ["verify", "--recursive-errors=no", path],
      { encoding: "utf8" },
    );
    const complaints = stderr
      .split("\n")
      .filter((line) => line.includes(unitName));
    expect(complaints).toEqual([]);
    expect(status).toBe(0);
  },
);

test("the property list is well formed, whatever a path holds", () => {
  const plist = launchdPlist(plan({ home: "/Users/a & b/<hearth>" }));
  expect(plist).toContain(
    "/Users/a &amp; b/&lt;hearth&gt;/logs/supervisor.log",
  );
  expect(plist).toContain(
    "<string>--env-file-if-exists=/Users/a &amp; b/&lt;hearth&gt;/service.env</string>",
  );
  const names = [...plist.matchAll(/<(\/?)([a-z]+)(\/?)(?: [^>]*)?>/g)];
  const open: string[] = [];
  for (const [, closes, name = "", empty] of names)
    if (closes === "/") expect(open.pop()).toBe(name);
    else if (empty === "") open.push(name);
  expect(open).toEqual([]);
});

test("launchd is told what to load, and an error is quoted", () => {
  const told: string[] = [];
  const manager = findServiceManager(false, "darwin", (program, args) => {
    told.push([program, ...args].join(" "));
    return { ok: true, output: "state = running" };
  });
  expect(manager.status()).toMatchObject({ installed: false, running: true });
  expect(told).toEqual([
    `launchctl print gui/${process.getuid?.()}/org.hearth.supervisor`,
  ]);
  expect(() => findServiceManager(true, "win32")).toThrow(
    "services can be installed with systemd and launchd, and this is win32",
  );
});
