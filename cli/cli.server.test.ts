import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { operatorHeaders } from "../supervisor/credentials.ts";
import { projectRoot } from "../supervisor/home/home.ts";
import {
  runHearth,
  startHearth,
  type CommandResult,
} from "../test/supervisor/hearth-command.ts";
import { hasRclone } from "../test/supervisor/rclone.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/wait-for.ts";
import { startWatcher } from "../embedded/watcher.ts";
import { makeIdentity } from "../supervisor/offsite/age.ts";
import { listen } from "../test/servers/ports.ts";

let place: ReturnType<typeof temporaryHome>;
/** Changed by the supervisor that a test starts in this process. */
const umask = process.umask();

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => {
  process.umask(umask);
  place.remove();
});

/** Runs the CLI with a temporary home. */
const hearth = (...words: readonly string[]): Promise<CommandResult> =>
  runHearth(words, { HEARTH_HOME: place.home.root });

/** In a process of its own. */
const hearthAlone = (...words: readonly string[]): Promise<CommandResult> =>
  startHearth(words, { HEARTH_HOME: place.home.root }).ended;

test.each([
  [
    ["stauts"],
    'hearth: unknown command "stauts" (did you mean "status"?). Run `hearth --help` for all commands.\n',
  ],
  [
    ["stop"],
    'hearth: unknown command "stop" (did you mean "down"?). Run `hearth --help` for all commands.\n',
  ],
  [
    ["keys", "create"],
    'hearth: unknown command "create" (did you mean "new"?). Run `hearth keys --help` for all commands.\n',
  ],
  [
    ["up", "--detatch"],
    'hearth: unknown option "--detatch" (did you mean "--detach"?). Run `hearth up --help` for details.\n',
  ],
  [
    ["logout", "--quick"],
    'hearth: unknown option "--quick" (known: --json, --url). Run `hearth logout --help` for details.\n',
  ],
  [
    ["models", "discovr"],
    'hearth: unknown command "discovr" (did you mean "discover"?). Run `hearth models --help` for all commands.\n',
  ],
  [["check"], "hearth: name is required, for example: hearth check gateway\n"],
  [
    ["status", "now"],
    'hearth: unexpected argument "now". Run `hearth status --help` for details.\n',
  ],
  [
    ["models", "discover", "--url"],
    "hearth: --url requires a value: --url <address>. Run `hearth models discover --help` for details.\n",
  ],
  [
    ["report", "spend", "--out", ""],
    "hearth: --out requires a value: --out <file>. Run `hearth report spend --help` for details.\n",
  ],
  [
    ["notes", "export", "family", ""],
    "hearth: directory must not be empty, for example: hearth notes export notes ~/notes-copy\n",
  ],
  [
    ["report", "spend", "--since", "30d", "--period", "week"],
    "hearth: --since and --period cannot be combined.\n",
  ],
  [
    ["report", "health", "--json", "--format", "csv"],
    "hearth: --json and --format cannot be combined.\n",
  ],
  [
    ["keys", "new", "--models", "gpt-mini", "--models=claude-sonnet"],
    "hearth: --models is given twice; give it once. Run `hearth keys new --help` for details.\n",
  ],
  [
    ["logs", "gateway", "-n", "5", "--lines", "6"],
    "hearth: --lines is given twice; give it once. Run `hearth logs --help` for details.\n",
  ],
  [
    ["up", "--echo", "--no-echo"],
    "hearth: --echo is given twice; give it once. Run `hearth up --help` for details.\n",
  ],
  [
    ["notes", "remove", "family", "--yes=no"],
    'hearth: --yes takes no value, not "no". Run `hearth notes remove --help` for details.\n',
  ],
  [
    ["help", "stauts"],
    'hearth: unknown command "stauts" (did you mean "status"?). Run `hearth --help` for all commands.\n',
  ],
  [
    ["uninstall", "--keep-data", "--delete-data"],
    "hearth: --keep-data and --delete-data cannot be combined.\n",
  ],
  [
    ["--verbose"],
    'hearth: unknown option "--verbose". Run `hearth --help` for all commands.\n',
  ],
])("%j is a usage error: one sentence, exit code 2", async (words, error) => {
  expect(await hearth(...words)).toEqual({ code: 2, out: "", error });
});

test("hearth help COMMAND shows the help of the command", async () => {
  for (const words of [["up"], ["keys"], ["keys", "new"]]) {
    const help = await hearth(...words, "--help");
    expect(await hearth("help", ...words)).toEqual(help);
  }
  expect(await hearth("keys", "help", "new")).toEqual(
    await hearth("keys", "new", "--help"),
  );
});

test.each(["up", "models discover", "operator metrics-token"])(
  "hearth %s --help shows an example, in plain text",
  async (verb) => {
    const { code, out } = await hearth(...verb.split(" "), "--help");
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`EXAMPLE\\n\\n  hearth ${verb}`));
    expect(out).not.toContain("\x1b");
  },
);

test("help and read-only commands create nothing", async () => {
  await hearth("--help");
  await hearth("status");
  await hearth("down");
  await hearth("config", "--check");
  await hearth("service", "install", "--print");
  expect(existsSync(place.home.root)).toBe(false);
});

test("an off-site target of the wrong form is a usage error", async () => {
  const rejected = {
    code: 2,
    out: "",
    error: expect.stringContaining('"nas" is not a valid target'),
  };
  expect(await hearth("offsite", "setup", "nas")).toEqual(rejected);
  const keyFile = join(place.directory, "identity");
  writeFileSync(keyFile, await makeIdentity());
  expect(
    await hearth("offsite", "restore", "--target=nas", "--key-file", keyFile),
  ).toEqual(rejected);
  for (const remote of [":webdav", "nas"]) {
    const { code, error } = await hearth(
      "offsite",
      "setup",
      `${remote},url=https://nas,pass=s3cret:hearth`,
    );
    expect(code).toBe(2);
    expect(error).toContain(`"${remote},…" is not a valid target`);
  }
});

test("an off-site target that cannot be written is not set", async () => {
  const setup = await hearth("offsite", "setup", "/dev/null/backups");
  expect(setup).toMatchObject({ code: 1, out: "" });
  expect((await hearth("offsite", "key")).error).toContain(
    "no off-site target is configured",
  );
});

test.skipIf(!hasRclone())(
  "an off-site target on the disk of Hearth's own data is set with a warning",
  async () => {
    const target = join(place.directory, "disk");
    const { code, out, error } = await hearth("offsite", "setup", target);
    expect(code).toBe(0);
    expect(out).toMatch(/^AGE-SECRET-KEY-1/);
    expect(error).toContain(`${target} is on the disk of Hearth's own data`);
  },
);

test("status fails while nothing is running", async () => {
  expect(await hearthAlone("status")).toEqual({
    code: 1,
    out: "Hearth is not running here. Run `hearth up` to start it.\n",
    error: "",
  });
  expect(JSON.parse((await hearth("status", "--json")).out)).toMatchObject({
    ok: false,
    phase: "stopped",
    services: [],
  });
  expect(await hearth("check", "gateway")).toMatchObject({
    code: 1,
    error: "hearth: Hearth is not running here: run `hearth up` to start it.\n",
  });
  expect(await hearth("down")).toMatchObject({
    code: 0,
    out: "Hearth is not running here.\n",
  });
});

test("a supervisor that does not respond is reported with its address, without the password in it", async () => {
  const url = "http://user:password@127.0.0.1:1";
  expect(await hearth("status", "--url", url)).toEqual({
    code: 1,
    out: "",
    error:
      "hearth: the supervisor at http://127.0.0.1:1 does not respond (ECONNREFUSED): check that it is running; `hearth up` starts it on this machine.\n",
  });
});

test("logs of another machine come from its supervisor", async () => {
  const urls: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    urls.push(request.url);
    const body = request.url?.startsWith("/api/status")
      ? { services: [{ name: "gateway" }, { name: "notes" }] }
      : { lines: ["one", "two"] };
    response.end(JSON.stringify(body));
  });
  const port = await listen(server);
  const url = `--url=http://127.0.0.1:${port}`;
  try {
    const one = await hearth("logs", "gateway", "-n", "2", url);
    expect(one).toEqual({ code: 0, out: "one\ntwo\n", error: "" });
    const all = await hearth("logs", url);
    expect(all.out).toBe("── gateway ──\none\ntwo\n── notes ──\none\ntwo\n");
    const json = await hearth("logs", "gateway", "--json", url);
    expect(json.out).toBe(
      '{"service":"gateway","line":"one"}\n{"service":"gateway","line":"two"}\n',
    );
    urls.pop();
    expect(urls).toEqual([
      "/api/logs/gateway?lines=2",
      "/api/status",
      "/api/logs/gateway?lines=50",
      "/api/logs/notes?lines=50",
    ]);
  } finally {
    server.close();
  }
});

test("--json prints JSON also where nothing runs", async () => {
  const json = async (...words: readonly string[]) =>
    JSON.parse((await hearth(...words, "--json")).out) as unknown;
  expect(await json("down")).toEqual({ stopped: false, services: [] });
  expect(await json("home", "show")).toEqual({ root: place.home.root });
  expect(await json("config")).toMatchObject({
    file: join(projectRoot, "config", "supervisor.yaml"),
    settings: { watchdog: { every: "1m" } },
  });
  expect(await json("config", "--check")).toMatchObject({ valid: true });
  expect(await json("completion", "bash")).toEqual({
    shell: "bash",
    script: (await hearth("completion", "bash")).out.replace(/\n$/, ""),
  });
  expect(await json("offsite", "key", "--new")).toEqual({
    identity: expect.stringMatching(/^AGE-SECRET-KEY-1/) as string,
  });
  expect(await json("uninstall")).toMatchObject({ removed: false });
  expect(await hearth("restart", "gateway", "--json")).toEqual({
    code: 1,
    out: "",
    error: "hearth: Hearth is not running here: run `hearth up` to start it.\n",
  });
});

test("the version is printed", async () => {
  const { code, out, error } = await hearthAlone("--version");
  expect([code, error]).toEqual([0, ""]);
  expect(out).toMatch(/^hearth \d+\.\d+\.\d+/);
});

test("logs shows the last lines of one service or all", async () => {
  mkdirSync(place.home.logs, { recursive: true });
  writeFileSync(join(place.home.logs, "gateway.log"), "one\ntwo\nthree\n");
  writeFileSync(join(place.home.logs, "notes.log"), "four\n");
  expect((await hearth("logs", "gateway", "-n", "2")).out).toBe("two\nthree\n");
  expect((await hearth("logs", "--lines=1")).out).toBe(
    "── gateway ──\nthree\n── notes ──\nfour\n",
  );
  expect((await hearth("logs", "--lines=1", "--json")).out).toBe(
    '{"service":"gateway","line":"three"}\n{"service":"notes","line":"four"}\n',
  );
  expect(await hearthAlone("logs", "gatway")).toMatchObject({
    code: 2,
    error: 'hearth: unknown service "gatway" (did you mean "gateway"?).\n',
  });
  expect((await hearth("logs", "--lines", "many")).code).toBe(2);
});

test("config prints the reference and checks the settings in use", async () => {
  expect((await hearth("config")).out).toContain("This file is the reference");
  expect(await hearth("config", "--check")).toMatchObject({
    code: 0,
    out: expect.stringContaining("The gateway's configuration: valid."),
    error: "",
  });
});

test.each([
  [
    ["silence", "gateway"],
    '`hearth silence` requires a name, a duration and --why, for example: hearth silence gateway 2h --why "new memory"',
  ],
  [
    ["silence", "gateway", "soon", "--why", "new memory"],
    '"soon" is not a duration; write 30m, 2h or 7d.',
  ],
  [
    ["history", "-n", "many"],
    '--lines must be a number from 1 to 10000, not "many".',
  ],
])("%j is a usage error before any request", async (words, sentence) => {
  expect(await hearth(...words)).toEqual({
    code: 2,
    out: "",
    error: `hearth: ${sentence}\n`,
  });
});

test("a link signs a browser in; sign-out, operator password and metrics token work", async () => {
  const start = () =>
    startWatcher({
      home: place.home,
      env: { HEARTH_SUPERVISOR_PORT: "0" },
      runtime: "none",
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
    const { code, out, error } = await hearth(...words);
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
    expect(await line("sign-out", "--all", "--json")).toBe(
      '{\n  "ended": 1\n}',
    );
    expect(await status(session)).toBe(401);
    expect(await status(await signIn(other))).toBe(401);
    expect((await hearth("sign-out")).code).toBe(2);

    const invited = await line("users", "invite", "--for", "anna");
    const [invitation = "", validity] = invited.split("\n");
    expect(invitation).toMatch(
      new RegExp(`^${watcher.address}/invitation/[0-9a-f]{48}$`),
    );
    expect(validity).toContain("`hearth users invite --revoke 1`");
    expect((await fetch(invitation)).status).toBe(200);
    const list = await line("users", "invite", "--list");
    expect(list).toMatch(/1 +anna +open until .* none +operator/);
    expect(await line("users", "invite", "--revoke", "1")).toBe(
      "Invitation 1 revoked. Its link is no longer valid.",
    );
    expect((await fetch(invitation)).status).toBe(404);
    expect((await hearth("users", "invite", "--revoke", "1")).error).toContain(
      "There is no open invitation of this number",
    );
    expect(
      (await hearth("users", "invite", "--expires", "60d")).error,
    ).toContain("--expires must be at most 30d");

    const later = await signIn(await line("open"));
    const password = await line("operator", "password");
    expect(await status(operatorHeaders(password))).toBe(200);
    const next = await line("operator", "password", "--new");
    expect(JSON.parse(await line("operator", "password", "--json"))).toEqual({
      operatorPassword: next,
    });
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
    expect(await line("sign-out", "--all")).toBe("All browsers signed out.");
    expect((await hearth("open")).error).toContain(
      "run `hearth up` to start it",
    );
    watcher = await start();
    // The cookie's name contains the port, which has changed.
    const { port } = new URL(watcher.address);
    const cookie = last.cookie.replace(before, port);
    expect(cookie).toContain(port);
    expect(await status({ cookie })).toBe(401);
  } finally {
    await watcher.stop();
  }
}, 120_000);

test("a password from the environment is shown, but not replaced", async () => {
  const withPassword = (...words: readonly string[]) =>
    runHearth(["operator", "password", ...words], {
      HEARTH_HOME: place.home.root,
      HEARTH_OPERATOR_PASSWORD: "of-the-deployment",
    });
  expect((await withPassword()).out).toBe("of-the-deployment\n");
  expect(await withPassword("--new")).toMatchObject({
    code: 1,
    out: "",
    error: expect.stringContaining("npx pulumi config set") as string,
  });
  expect((await hearth("operator", "password")).error).toContain(
    "created by the next start of Hearth",
  );
});

test("alarms, silences, pauses and history work against a supervisor", async () => {
  const received: string[] = [];
  const sick = createServer((request, response) => {
    if (request.url !== "/hook") {
      response.writeHead(500).end("out of memory");
      return;
    }
    request.on("data", (part) => received.push(String(part)));
    request.on("end", () => response.end("{}"));
  });
  const port = await listen(sick);
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(
    config,
    `checks: [{ name: sick, kind: http, url: "http://127.0.0.1:${port}/", every: 1s, fail_after: 1 }]
notify:
  - { name: hook, kind: webhook, url: "http://127.0.0.1:${port}/hook" }
  - { name: gone, kind: webhook, url: "http://127.0.0.1:${port}/gone" }
`,
  );
  const watcher = await startWatcher({
    home: place.home,
    env: { HEARTH_SUPERVISOR_CONFIG: config, HEARTH_SUPERVISOR_PORT: "0" },
    runtime: "none",
    onNotice: () => {},
    onService: () => {},
    onCheck: () => {},
  });
  const ask = (...words: readonly string[]) =>
    hearth(...words, "--url", watcher.address);
  try {
    await waitFor("the alarm", async () =>
      (await ask("alerts")).out.includes("sick is down"),
    );
    expect((await ask("alerts")).code).toBe(1);
    expect(await ask("history", "sikc")).toEqual({
      code: 2,
      out: "",
      error:
        'hearth: service or check "sikc" not found (did you mean "sick"?).\n',
    });
    expect((await ask("history", "of an alarm")).out).toBe(
      'No entries for "of an alarm". Run `hearth status` for the names.\n',
    );
    expect(received).toEqual([]);
    const tested = await ask("alerts", "test");
    expect(tested.out).toMatch(/● works +hook +delivered/);
    expect(tested.out).toMatch(/✕ fails +gone .*1 waiting/);
    expect(tested).toMatchObject({ code: 1, error: "" });
    expect(received.join()).toContain("this is a test message");
    const asJson = await ask("alerts", "test", "--json");
    expect(JSON.parse(asJson.out)).toMatchObject([
      { name: "hook", trouble: null },
      { name: "gone", trouble: expect.stringContaining("500") as string },
    ]);
    expect(await ask("alerts", "tset")).toMatchObject({
      code: 2,
      error:
        'hearth: unknown action "tset" (did you mean "test"?). Run `hearth alerts --help` for details.\n',
    });
    const created = await ask("silence", "sick", "2h", "--why", "new memory");
    expect(created).toMatchObject({ code: 0, error: "" });
    expect(created.out).toContain("sick silenced until");
    expect((await ask("silence", "--list")).out).toContain("new memory");
    expect((await ask("alerts")).out).toContain("(silenced: new memory)");
    expect((await ask("silence", "--end", "sick")).code).toBe(0);
    expect(await ask("silence", "--end", "sick")).toMatchObject({
      code: 2,
      error: 'hearth: silence "sick" not found; there are no silences.\n',
    });
    expect(await ask("silence", " ", "2h", "--why", "moving")).toMatchObject({
      code: 2,
      error: "hearth: name must be the name of an alarm.\n",
    });
    expect(
      await ask("maintenance", "A,B", "2h", "--why", "updates"),
    ).toMatchObject({
      code: 2,
      error: "hearth: name must be lower-case letters, digits and -.\n",
    });
    const maintain = ["maintenance", "all", "2h", "--why", "updates"] as const;
    const first = await ask(...maintain, "--json");
    expect((await ask(...maintain)).code).toBe(0);
    const { id } = JSON.parse(first.out) as { readonly id: string };
    expect((await ask("maintenance", "--end", id)).out).toMatch(
      /^Maintenance ended: everything\. Still in maintenance: everything for .+ \(\w{8}\)\.\n$/,
    );
    expect((await ask("maintenance", "--end", "all")).out).toBe(
      "Maintenance ended: everything. Alerts and restarts resumed.\n",
    );
    expect((await ask("maintenance", "--end", "all")).code).toBe(2);
    expect((await ask("pause", "sick", "--why", "moving")).code).toBe(0);
    const paused = await ask("check", "sick", "--json");
    expect(JSON.parse(paused.out)).toMatchObject({ state: "paused" });
    expect((await ask("resume", "sick")).code).toBe(0);
    expect((await ask("pause", "sik")).code).toBe(2);
    const { out } = await ask("history", "sick", "--json");
    expect(JSON.parse(out)).toContainEqual(
      expect.objectContaining({ kind: "incident", name: "sick", to: "down" }),
    );
    expect((await ask("history", "sick")).out).toMatch(/incident +sick +down/);
    expect(await ask("report", "health", "--since", "99999d")).toMatchObject({
      code: 2,
      error: expect.stringContaining('invalid start "99999d"'),
    });
    expect(await ask("restore", "gone", "--yes")).toMatchObject({
      code: 2,
      error: expect.stringContaining('backup "gone" not found'),
    });
    const changes = await ask("history", "sick", "--changes", "--json");
    expect(JSON.parse(changes.out)).toContainEqual(
      expect.objectContaining({ kind: "check", name: "sick", to: "down" }),
    );
  } finally {
    await watcher.stop();
    await new Promise((resolve) => sick.close(resolve));
  }
});
