import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Failure } from "../../core/failure.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { loadConfig, shippedConfig } from "./load.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

function file(name: string, text: string): string {
  const path = join(place.directory, name);
  writeFileSync(path, text);
  return path;
}

function errorsOf(...paths: readonly string[]): readonly string[] {
  try {
    loadConfig(paths, () => undefined);
    return [];
  } catch (error) {
    if (error instanceof Failure) {
      return error.sentences.map((each) =>
        each.replace(`${place.directory}/`, ""),
      );
    }
    throw error;
  }
}

/** The shipped file with these variables set. */
function shippedWith(variables: Readonly<Record<string, string>>) {
  return loadConfig([shippedConfig], (name) => variables[name]);
}

const embedded = {
  HEARTH_HOME: "/home/.hearth",
  BACKUP_DIRECTORY: "/home/.hearth/backups",
  SUPERVISOR_DATABASE_URL: "postgres://u@127.0.0.1/hearth",
};

test("the shipped file has no mistake and watches what runs on one machine", () => {
  const { config, leftOut } = shippedWith(embedded);
  expect(config.checks.map(({ name }) => name)).toEqual([
    "gateway",
    "gateway-ready",
    "postgres",
    "notes",
    "disk",
    "backup-postgres",
    "backup-notes",
  ]);
  expect(config.checks[0]).toMatchObject({
    url: "http://127.0.0.1:4000/health/liveliness",
    every: 30_000,
    fail_after: 3,
    heal: { restart: "gateway", max: 3, per: 3_600_000 },
  });
  expect(config.restarts).toEqual({
    max: 10,
    per: 600_000,
    first_wait: 200,
    longest_wait: 30_000,
  });
  expect(leftOut).toEqual([]);
});

test("on two hosts it also watches redis, the other host and the certificate", () => {
  const { config } = shippedWith({
    ...embedded,
    REDIS_HOST: "redis",
    REDIS_PASSWORD: "s3cret",
    PEER_GATEWAY_URL: "http://10.0.0.2:4001",
    HEARTH_PEER_URL: "http://10.0.0.2:4080",
    EDGE_URL: "https://ai.example.org",
  });
  const names = config.checks.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["redis", "peer-gateway", "certificate"]),
  );
  expect(config.checks.find(({ kind }) => kind === "redis")).toMatchObject({
    host: "redis",
    password: "s3cret",
    heal: { restart: "redis" },
  });
});

test("every example in the comments of the shipped file is valid", () => {
  const text = readFileSync(shippedConfig, "utf8")
    .replaceAll(/^ {2}# (?=(- name:| {2}[a-z_]+:))/gm, "  ")
    .replaceAll(
      /^# (?=(maintenance|offline|notify|sign_in|jobs|backups|notes):| {2}(- (name|kind)|[a-z_]+):| {4}[a-z_]+:)/gm,
      "",
    )
    .replaceAll(/ {3,}(default:|or cron).*/g, "");
  const named: Readonly<Record<string, string>> = {
    ...embedded,
    ALERT_TOKEN: "t",
    NTFY_TOKEN: "t",
    MAIL_PASSWORD: "p",
    SLACK_URL: "https://hooks.example.org/x",
    AUTHELIA_CLIENT_SECRET: "a",
    GOOGLE_CLIENT_SECRET: "g",
  };
  const { checks, maintenance, notify, offline, sign_in } = loadConfig(
    [file("all.yaml", text)],
    (name) => named[name],
  ).config;
  expect(notify.map(({ kind }) => kind)).toEqual([
    "webhook",
    "ntfy",
    "slack",
    "smtp",
  ]);
  expect(new Set(checks.map(({ kind }) => kind)).size).toBeGreaterThan(6);
  expect(checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["printer", "edge", "photos"]),
  );
  expect(maintenance).toMatchObject([{ name: "updates", for: 7_200_000 }]);
  expect(offline.references).toHaveLength(2);
  expect(sign_in.map(({ name }) => name)).toEqual(["authelia", "google"]);
});

test("a file without checks gets those of the shipped one", () => {
  const mine = file("mine.yaml", "restarts: { max: 3 }\n");
  const { config } = loadConfig([mine], () => undefined);
  expect(config.checks.map(({ name }) => name)).toContain("gateway");
  expect(config.restarts.max).toBe(3);
});

test("a check with an unset variable is skipped, and others no longer depend on it", () => {
  const { config, leftOut } = loadConfig([shippedConfig], () => undefined);
  expect(leftOut).toEqual([
    "check postgres skipped: SUPERVISOR_DATABASE_URL is not set",
    "check disk skipped: HEARTH_HOME is not set",
  ]);
  expect(
    config.checks.find(({ name }) => name === "gateway-ready")?.depends_on,
  ).toEqual(["gateway"]);
});

test("an operator's file adds checks, replaces those of the same name, and is merged key by key", () => {
  const mine = file(
    "mine.yaml",
    `restarts: { max: 3 }
checks:
  - { name: notes, kind: tcp, port: 5984 }
  - { name: redis, kind: tcp, port: 6379 }
`,
  );
  const { config } = loadConfig([shippedConfig, mine], () => undefined);
  expect(config.checks.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
    "gateway http",
    "gateway-ready http",
    "notes tcp",
    "redis tcp",
  ]);
  expect(config.restarts).toMatchObject({ max: 3, per: 600_000 });
});

test("an empty file is a file without mistakes", () => {
  expect(errorsOf(file("empty.yaml", "# nothing\n"))).toEqual([]);
  expect(errorsOf(file("sections.yaml", "restarts:\nchecks:\n"))).toEqual([]);
});

test("all mistakes are reported at once, each with its line", () => {
  const path = file(
    "bad.yaml",
    `restarts:
  maxx: 3
  per: soon
checks:
  - name: gateway
    kind: htpp
  - name: a
    kind: http
    url: nowhere
    everry: 3s
    fail_after: 0
    depends_on: [b, gateway]
  - name: a
    kind: tcp
    port: 99999
  - { name: b1, kind: disk, path: /, depends_on: [b2] }
  - { name: b2, kind: disk, path: /, depends_on: [b1] }
  - { name: c, kind: certificate }
maintenance:
  - { weekly: someday 9:00, for: 2h }
  - { for: 2h }
  - { cron: "0 4 * *", for: 2h }
offline: { references: [ftp://nowhere] }
jokes: []
`,
  );
  expect(errorsOf(path)).toEqual([
    'bad.yaml:2: restarts: unknown setting "maxx" (did you mean "max"?)',
    'bad.yaml:3: restarts.per: must be a duration such as 500ms, 30s, 2m, 1h or 7d; it is "soon"',
    'bad.yaml:6: checks[gateway].kind: must be one of http, tcp, postgres, redis, couchdb, container, pods, disk, certificate, backup, heartbeat, models; it is "htpp"',
    'bad.yaml:9: checks[a].url: must be an http(s) address; it is "nowhere"',
    'bad.yaml:10: checks[a]: unknown setting "everry" (did you mean "every"?)',
    "bad.yaml:11: checks[a].fail_after: must be a whole number from 1 to 100; it is 0",
    'bad.yaml:12: checks[a].depends_on: unknown check "b" (known: gateway, b1, b2, c)',
    'bad.yaml:13: checks[a].name: "a" already exists; names must be unique',
    "bad.yaml:15: checks[a].port: must be a whole number from 1 to 65535; it is 99999",
    "bad.yaml:16: checks[b1].depends_on: circular dependency: b1 → b2 → b1",
    "bad.yaml:18: checks[c].kind: either url or file is required",
    'bad.yaml:20: maintenance[0].weekly: "someday 9:00" must be a day and a time, such as "sunday 04:00"',
    "bad.yaml:21: maintenance[1].cron: either weekly or cron is required",
    'bad.yaml:22: maintenance[2].cron: "0 4 * *" must have five fields: minute, hour, day of month, month, day of week, such as "0 4 1 * *"',
    'bad.yaml:23: offline.references[0]: must be an http(s):// or tcp:// address; it is "ftp://nowhere"',
    'bad.yaml:24: unknown setting "jokes" (did you mean "jobs"?)',
  ]);
});

test("maintenance of an unknown check is rejected with the nearest name; a check skipped on this host may be named", () => {
  const path = file(
    "windows.yaml",
    `checks:
  - { name: printer, kind: http, url: "http://printer/" }
  - { name: mill, kind: http, url: "\${MILL_URL}" }
maintenance:
  - { weekly: sunday 04:00, for: 2h, checks: [printer, mill, peer, gateway-container, kubernetes] }
  - { weekly: sunday 04:00, for: 2h, checks: [printr] }
  - { weekly: sunday 04:00, for: 2h, checks: [something-else] }
`,
  );
  expect(errorsOf(path)).toEqual([
    'windows.yaml:6: maintenance[1].checks: unknown check "printr" (did you mean "printer"?)',
    'windows.yaml:7: maintenance[2].checks: unknown check "something-else" (known: printer, mill)',
  ]);
});

test("notification sinks are read, and secrets may only come from variables", () => {
  const path = file(
    "notify.yaml",
    `notify:
  - { kind: slack, url: "\${SLACK}" }
  - { kind: webhook, name: phone, url: "\${NOWHERE}" }
  - { kind: smtp, host: mail, from: Hearth <a@example.org>, to: b@example.org, password: "\${PASSWORD}", fallback: true }
watchdog: { url: "\${PING:-}" }
peer: { url: "http://b:4080" }
checks: []
`,
  );
  const { config, leftOut } = loadConfig(
    [path],
    (name) =>
      ({ SLACK: "https://hooks.example/s3cret", PASSWORD: "s3cret" })[name],
  );
  expect(leftOut).toEqual(["notify phone skipped: NOWHERE is not set"]);
  expect(config.notify).toMatchObject([
    { kind: "slack", remind: 14_400_000, fallback: false },
    { kind: "smtp", port: 587, security: "starttls", to: ["b@example.org"] },
  ]);
  expect(config.watchdog).toEqual({ every: 60_000 });
  expect(config.peer).toEqual({ url: "http://b:4080" });
  const errors = errorsOf(
    file(
      "written.yaml",
      `notify:
  - kind: slack
    url: https://hooks.example/s3cret
  - kind: ntfy
    url: https://ntfy.example
    token: s3cret
  - kind: pigeon
watchdog: { evry: 1m }
`,
    ),
  );
  expect(errors).toEqual([
    "written.yaml:3: notify[0].url: must not contain a secret: write ${NAME}, and set the variable NAME, or NAME_FILE to the path of a file",
    "written.yaml:5: notify[1].url: must be the address of a topic, such as https://ntfy.sh/my-home",
    "written.yaml:6: notify[1].token: must not contain a secret: write ${NAME}, and set the variable NAME, or NAME_FILE to the path of a file",
    "written.yaml:7: notify[2].kind: must be one of webhook, smtp, ntfy, slack",
    'written.yaml:8: watchdog: unknown setting "evry" (did you mean "every"?)',
  ]);
  expect(errors.join()).not.toContain("s3cret");
});

test("providers for signing in have defaults; without its secret one is skipped", () => {
  const path = file(
    "sign-in.yaml",
    `sign_in:
  - { name: home, issuer: "https://auth.example.org", client_id: hearth, client_secret: "\${SECRET}", roles: { map: { admins: admin } } }
  - { name: near, issuer: "http://127.0.0.1:9000", client_id: hearth, allow: { everyone: true }, roles: { otherwise: viewer } }
  - { name: away, issuer: "https://auth.example.net", client_id: hearth, client_secret: "\${NOWHERE}", roles: { otherwise: admin } }
checks: []
`,
  );
  const { config, leftOut } = loadConfig(
    [path],
    (name) => ({ SECRET: "s3cret" })[name],
  );
  expect(leftOut).toEqual(["sign_in away skipped: NOWHERE is not set"]);
  expect(config.sign_in).toEqual([
    {
      name: "home",
      issuer: "https://auth.example.org",
      client_id: "hearth",
      client_secret: "s3cret",
      scopes: ["openid", "profile", "email"],
      roles: { claim: "groups", map: { admins: "admin" } },
      confirm_every: 300_000,
      session: 43_200_000,
    },
    expect.objectContaining({ name: "near", allow: { everyone: true } }),
  ]);
});

test("a provider whose people get users needs no roles, if it says who may sign in", () => {
  const provider =
    "{ name: home, issuer: 'https://a.example.org', client_id: hearth, allow: { groups: [staff] }";
  const users =
    "{ teams: { staff: [cooking, { team: kitchen, role: admin }] }, organizations: { staff: [acme] }, budget_duration: 1mo }";
  const path = file(
    "users.yaml",
    `sign_in: [${provider}, users: ${users} }]\nchecks: []\n`,
  );
  const { config } = loadConfig([path], () => undefined);
  expect(config.sign_in).toMatchObject([
    {
      roles: { claim: "groups", map: {} },
      users: {
        teams: {
          staff: [
            { team: "cooking", role: "user" },
            { team: "kitchen", role: "admin" },
          ],
        },
        organizations: { staff: ["acme"] },
      },
    },
  ]);
  const errors = errorsOf(
    file(
      "mistakes.yaml",
      `sign_in:
  - ${provider}, users: { teams: { staff: cooking }, budget_duration: often } }
  - ${provider.replace("home", "more")}, roles: { otherwise: user } }
  - ${provider.replace("home", "none").replace(/, allow.*/, "")}, users: {} }
checks: []
`,
    ),
  );
  expect(errors).toEqual([
    expect.stringContaining("mistakes.yaml:2: sign_in[home].users.teams.staff"),
    'mistakes.yaml:2: sign_in[home].users.budget_duration: must be a duration, such as 30d or 1mo; it is "often"',
    "mistakes.yaml:3: sign_in[more].roles: gives the role user, whose page needs a user of the gateway: set users, {} if nothing else",
    expect.stringContaining(
      "sign_in[none].roles: gives no user a role: set map or otherwise",
    ),
  ]);
});

test("mistakes of providers are reported with their lines, and never let in more people than intended", () => {
  const errors = errorsOf(
    file(
      "sign-in.yaml",
      `sign_in:
  - name: home
    issuer: http://auth.example.org
    client_id: hearth
    client_secret: s3cret
    scopes: [email]
    allow: { domain: [example.org] }
    roles: { map: { admins: root } }
    confirm_every: 2h
  - name: open
    issuer: https://accounts.example.org
    client_id: hearth
    roles:
      otherwise: viewer
  - { name: empty, issuer: "https://a.example.org", client_id: hearth, roles: {} }
checks: []
`,
    ),
  );
  expect(errors).toEqual([
    'sign-in.yaml:3: sign_in[home].issuer: must be an https address; http is accepted only for a provider at 127.0.0.1, ::1 or localhost; it is "http://auth.example.org"',
    "sign-in.yaml:5: sign_in[home].client_secret: must not contain a secret: write ${NAME}, and set the variable NAME, or NAME_FILE to the path of a file",
    "sign-in.yaml:6: sign_in[home].scopes: must contain openid; it is a list",
    'sign-in.yaml:7: sign_in[home].allow: unknown setting "domain" (did you mean "domains"?)',
    'sign-in.yaml:8: sign_in[home].roles.map.admins: must be user, viewer, operator or admin; it is "root"',
    'sign-in.yaml:9: sign_in[home].confirm_every: must be at most 1h; it is "2h"',
    "sign-in.yaml:14: sign_in[open].roles.otherwise: gives a role to every account of the provider: set allow, with everyone: true if that is intended",
    "sign-in.yaml:15: sign_in[empty].roles: gives no user a role: set map or otherwise",
  ]);
  expect(errors.join()).not.toContain("s3cret");
});

test("the other host's supervisor is a check named peer, unless one is configured", () => {
  const peer = 'peer: { url: "${HEARTH_PEER_URL:-}" }\n';
  const none = `${peer}checks: []\n`;
  const read = (text: string, url: string | undefined) =>
    loadConfig([file("peer.yaml", text)], () => url).config.checks;
  expect(read(none, "http://b:4080/")).toMatchObject([
    { name: "peer", kind: "http", url: "http://b:4080/healthz" },
  ]);
  expect(read("checks: []\n", "http://b:4080")).toMatchObject([
    { name: "peer", url: "http://b:4080/healthz" },
  ]);
  expect(read(none, undefined)).toEqual([]);
  const own = `${peer}checks:\n  - { name: peer, kind: tcp, host: b, port: 1 }\n`;
  expect(read(own, "http://b:4080")).toMatchObject([
    { name: "peer", kind: "tcp" },
  ]);
});

test("mistakes of two files are reported together", () => {
  const one = file("one.yaml", "checks: 3\n");
  const two = file("two.yaml", "checks:\n  - name: [\n");
  const gone = join(place.directory, "gone.yaml");
  const errors = errorsOf(one, two, gone);
  expect(errors).toContain("one.yaml:1: checks: must be a list");
  expect(errors).toContain("gone.yaml: file not found");
  expect(errors.some((text) => text.startsWith("two.yaml:"))).toBe(true);
});

test("jobs that config/supervisor.yaml shows with their defaults have these defaults", () => {
  const [shown = ""] =
    /^# jobs:\n(?:# .*\n)+/m.exec(readFileSync(shippedConfig, "utf8")) ?? [];
  const jobs = shown.replace(/^# /gm, "").replace(/^ {2}time_zone:.*\n/m, "");
  expect(jobs).toMatch(/^ {4}reports: /m);
  const written = loadConfig([file("jobs.yaml", jobs)], () => undefined);
  expect(written.config.jobs).toEqual(shippedWith(embedded).config.jobs);
});
