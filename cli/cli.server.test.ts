import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { programEnv } from "../test/servers/program-env.ts";
import { operatorHeaders } from "../supervisor/credentials.ts";
import { projectRoot } from "../supervisor/home/home.ts";
import {
  startHearth,
  type CommandResult,
} from "../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/supervisor/wait-for.ts";
import { startWatcher } from "../embedded/watcher.ts";

const program = join(projectRoot, "supervisor", "cli", "main.ts");
let place: ReturnType<typeof temporaryHome>;
/** The supervisor that one test starts in this process changes it. */
const umask = process.umask();

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => {
  process.umask(umask);
  place.remove();
});

function environment() {
  return {
    ...programEnv(),
    HEARTH_HOME: place.home.root,
    NO_COLOR: "1",
  };
}

/** The same while this process goes on answering. */
const hearthThen = (words: readonly string[]): Promise<CommandResult> =>
  startHearth(words, { HEARTH_HOME: place.home.root }).ended;

/** Runs the CLI on a home of its own. */
function hearth(...words: readonly string[]) {
  const done = spawnSync(process.execPath, [program, ...words], {
    encoding: "utf8",
    env: environment(),
  });
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
  "history",
  "alerts",
  "silence",
  "pause",
  "resume",
  "doctor",
  "service install",
  "service remove",
  "service status",
  "open",
  "sign-out",
  "operator password",
  "operator metrics-token",
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
  hearth("service", "install", "--print");
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

test("logs that do not lie here come from the supervisor that is named", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    const body = request.url?.startsWith("/api/status")
      ? { services: [{ name: "gateway" }, { name: "notes" }] }
      : { lines: ["one", "two"] };
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `--url=http://127.0.0.1:${port}`;
  try {
    const one = await hearthThen(["logs", "gateway", "-n", "2", url]);
    expect(one).toEqual({ code: 0, out: "one\ntwo\n", error: "" });
    const all = await hearthThen(["logs", url]);
    expect(all.out).toBe("── gateway ──\none\ntwo\n── notes ──\none\ntwo\n");
    expect(asked).toEqual([
      "/api/logs/gateway?lines=2",
      "/api/status",
      "/api/logs/gateway?lines=50",
      "/api/logs/notes?lines=50",
    ]);
  } finally {
    server.close();
  }
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

test.each([
  [
    ["silence", "gateway"],
    '`hearth silence` needs a name, how long, and --why, for example: hearth silence gateway 2h --why "new memory"',
  ],
  [
    ["silence", "gateway", "soon", "--why", "new memory"],
    '"soon" is no duration: write 30m, 2h or 7d.',
  ],
  [
    ["history", "-n", "many"],
    '--lines is "many": it must be a number from 1 to 10000.',
  ],
])("%j is not understood before anybody is asked", (words, sentence) => {
  expect(hearth(...words)).toEqual({
    code: 2,
    out: "",
    error: `hearth: ${sentence}\n`,
  });
});

test("a browser is signed in by a printed link, and out again; the password and the token of Prometheus are shown and replaced", async () => {
  const start = () =>
    startWatcher({
      home: place.home,
      env: { HEARTH_SUPERVISOR_PORT: "0" },
      containers: false,
      onNotice: () => {},
      onService: () => {},
      onCheck: () => {},
    });
  let watcher = await start();
  const status = async (headers: Readonly<Record<string, string>>) =>
    (await fetch(`${watcher.address}/api/status`, { headers })).status;
  const signIn = async (link: string) => {
    const { headers } = await fetch(link.trim());
    return { cookie: headers.get("set-cookie")?.split(";")[0] ?? "" };
  };
  const line = async (...words: readonly string[]) => {
    const { code, out, error } = await hearthThen(words);
    expect([code, error]).toEqual([0, ""]);
    return out.trim();
  };
  try {
    const link = await line("open");
    expect(link).toMatch(
      new RegExp(`^${watcher.address}/sign-in/[0-9a-f]{48}$`),
    );
    const session = await signIn(link);
    expect(await status(session)).toBe(200);
    const other = await line("open");
    expect(await line("sign-out", "--all")).toContain("(1 session ended)");
    expect(await status(session)).toBe(401);
    expect(await status(await signIn(other))).toBe(401);
    expect((await hearthThen(["sign-out"])).code).toBe(2);

    const later = await signIn(await line("open"));
    const password = await line("operator", "password");
    expect(await status(operatorHeaders(password))).toBe(200);
    const next = await line("operator", "password", "--new");
    expect(await line("operator", "password")).toBe(next);
    expect(await status(operatorHeaders(password))).toBe(401);
    expect(await status(operatorHeaders(next))).toBe(200);
    expect(await status(later)).toBe(401);

    const metrics = async (token: string) =>
      (
        await fetch(`${watcher.address}/metrics`, {
          headers: { authorization: `Bearer ${token}` },
        })
      ).status;
    const token = await line("operator", "metrics-token");
    expect(await metrics(token)).toBe(200);
    const newToken = await line("operator", "metrics-token", "--new");
    expect(await metrics(token)).toBe(401);
    expect(await metrics(newToken)).toBe(200);

    const last = await signIn(await line("open"));
    const { port: before } = new URL(watcher.address);
    await watcher.stop();
    expect(await line("sign-out", "--all")).toBe(
      "Every browser is signed out.",
    );
    expect((await hearthThen(["open"])).error).toContain(
      "`hearth up` starts it",
    );
    watcher = await start();
    // The cookie's name has the port in it, which is another one now.
    const { port } = new URL(watcher.address);
    const cookie = last.cookie.replace(before, port);
    expect(cookie).toContain(port);
    expect(await status({ cookie })).toBe(401);
  } finally {
    await watcher.stop();
  }
}, 120_000);

test("a password of the environment is shown, and replaced where it is set", () => {
  const withPassword = (...words: readonly string[]) =>
    spawnSync(process.execPath, [program, "operator", "password", ...words], {
      encoding: "utf8",
      env: { ...environment(), HEARTH_OPERATOR_PASSWORD: "of-the-deployment" },
    });
  expect(withPassword().stdout).toBe("of-the-deployment\n");
  expect(withPassword("--new")).toMatchObject({
    status: 1,
    stdout: "",
    stderr: expect.stringContaining("npx pulumi config set") as string,
  });
  expect(hearth("operator", "password").error).toContain(
    "the next start of Hearth writes it",
  );
});

test("the command line works against a supervisor: alarms, silences, pauses, history", async () => {
  const sick = createServer((_request, response) =>
    response.writeHead(500).end("out of memory"),
  );
  await new Promise<void>((resolve) => sick.listen(0, "127.0.0.1", resolve));
  const { port } = sick.address() as AddressInfo;
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(
    config,
    `checks: [{ name: sick, kind: http, url: "http://127.0.0.1:${port}/", every: 1s, fail_after: 1 }]\n`,
  );
  const watcher = await startWatcher({
    home: place.home,
    env: { HEARTH_SUPERVISOR_CONFIG: config, HEARTH_SUPERVISOR_PORT: "0" },
    containers: false,
    onNotice: () => {},
    onService: () => {},
    onCheck: () => {},
  });
  const ask = (...words: readonly string[]) =>
    hearthThen([...words, "--url", watcher.address]);
  try {
    await waitFor("the alarm", async () =>
      (await ask("alerts")).out.includes("sick is down"),
    );
    expect((await ask("alerts")).code).toBe(1);
    expect((await ask("alerts", "--test")).out).toContain(
      "Nobody is told of alarms yet",
    );
    const made = await ask("silence", "sick", "2h", "--why", "new memory");
    expect(made).toMatchObject({ code: 0, error: "" });
    expect(made.out).toContain("Nobody is told of sick until");
    expect((await ask("silence", "--list")).out).toContain("new memory");
    expect((await ask("alerts")).out).toContain("(silent: new memory)");
    expect((await ask("silence", "--end", "sick")).code).toBe(0);
    expect(await ask("silence", "--end", "sick")).toMatchObject({
      code: 2,
      error: 'hearth: there is no silence "sick", nor any other.\n',
    });
    expect((await ask("pause", "sick", "--why", "moving")).code).toBe(0);
    const paused = await ask("check", "sick", "--json");
    expect(JSON.parse(paused.out)).toMatchObject({ state: "paused" });
    expect((await ask("resume", "sick")).code).toBe(0);
    expect((await ask("pause", "sik")).code).toBe(2);
    const { out } = await ask("history", "sick", "--json");
    expect(JSON.parse(out)).toContainEqual(
      expect.objectContaining({ name: "sick", to: "down" }),
    );
  } finally {
    await watcher.stop();
    await new Promise((resolve) => sick.close(resolve));
  }
});
