import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { projectRoot } from "../embedded/home.ts";
import { temporaryHome } from "../testing/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

/** Runs the CLI on a home of its own. */
function hearth(...words: readonly string[]) {
  const done = spawnSync(
    process.execPath,
    [join(projectRoot, "supervisor", "cli", "main.ts"), ...words],
    {
      encoding: "utf8",
      env: {
        PATH: process.env["PATH"],
        HEARTH_HOME: place.home.root,
        NO_COLOR: "1",
      },
    },
  );
  return { code: done.status, out: done.stdout, error: done.stderr };
}

test.each([
  [
    ["stauts"],
    "hearth: there is no command `hearth stauts`, did you mean `hearth status`?\n",
  ],
  [
    ["up", "--detatch"],
    "hearth: `hearth up` has no option --detatch, did you mean --detach?\n",
  ],
  [
    ["models", "discovr"],
    "hearth: there is no command `hearth models discovr`, did you mean `hearth models discover`?\n",
  ],
  [
    ["check"],
    "hearth: `hearth check` needs a name, for example: hearth check gateway\n",
  ],
  [
    ["status", "now"],
    'hearth: `hearth status` does not know what to do with "now": `hearth status --help` shows what it takes.\n',
  ],
  [
    ["models", "discover", "--url"],
    "hearth: --url needs a value: hearth models discover --url http://192.168.1.10:11434\n",
  ],
  [
    ["--verbose"],
    "hearth: hearth has no option --verbose: `hearth --help` lists what there is.\n",
  ],
])("%j is not understood: one sentence, exit code 2", (words, error) => {
  expect(hearth(...words)).toEqual({ code: 2, out: "", error });
});

test.each([
  "up",
  "down",
  "status",
  "check",
  "logs",
  "restart",
  "config",
  "models discover",
])("hearth %s --help shows an example, in plain text", (verb) => {
  const { code, out } = hearth(...verb.split(" "), "--help");
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`EXAMPLE\\n\\n  hearth ${verb}`));
  expect(out).not.toContain("\x1b");
});

test("help and reading commands leave nothing behind", () => {
  hearth("--help");
  hearth("status");
  hearth("down");
  hearth("config", "--check");
  expect(existsSync(place.home.root)).toBe(false);
});

test("without anything running, status says so and fails", () => {
  expect(hearth("status")).toEqual({
    code: 1,
    out: "Hearth is not running here. `hearth up` starts it.\n",
    error: "",
  });
  expect(JSON.parse(hearth("status", "--json").out)).toMatchObject({
    ok: false,
    phase: "stopped",
    services: [],
  });
  expect(hearth("check", "gateway")).toMatchObject({
    code: 1,
    error: "hearth: Hearth is not running here: `hearth up` starts it.\n",
  });
  expect(hearth("down")).toMatchObject({
    code: 0,
    out: "Hearth is not running here.\n",
  });
});

test("a supervisor that does not answer is named with its address", () => {
  expect(hearth("status", "--url", "http://127.0.0.1:1")).toEqual({
    code: 1,
    out: "",
    error:
      "hearth: the supervisor at http://127.0.0.1:1 does not answer (ECONNREFUSED): see whether it runs, `hearth up` starts it here.\n",
  });
});

test("logs shows the last lines of one file or of all", () => {
  mkdirSync(place.home.logs, { recursive: true });
  writeFileSync(join(place.home.logs, "gateway.log"), "one\ntwo\nthree\n");
  writeFileSync(join(place.home.logs, "notes.log"), "four\n");
  expect(hearth("logs", "gateway", "-n", "2").out).toBe("two\nthree\n");
  expect(hearth("logs", "--lines=1").out).toBe(
    "── gateway ──\nthree\n── notes ──\nfour\n",
  );
  expect(hearth("logs", "gatway")).toMatchObject({
    code: 2,
    error:
      'hearth: there is no log of "gatway", did you mean gateway? There are gateway, notes.\n',
  });
  expect(hearth("logs", "--lines", "many").code).toBe(2);
});

test("config prints the manual, and checks the settings in use", () => {
  expect(hearth("config").out).toContain("This file is the manual");
  expect(hearth("config", "--check")).toMatchObject({ code: 0 });
});
