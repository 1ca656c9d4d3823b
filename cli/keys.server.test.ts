import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startAdminFixture, type AdminFixture } from "../test/servers/admin.ts";
import { MASTER_KEY } from "../test/servers/gateway.ts";
import {
  makeLitellmTables,
  USUAL_DATA,
} from "../test/servers/litellm-database.ts";
import {
  runHearth,
  startHearth,
  type CommandResult,
} from "../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";

/** Changes reach the gateway by a notification, which may be slow on a busy machine. */
const PATIENT = { timeout: 20_000 };

// Each command is a separate process that loads its sources again.
vi.setConfig({ testTimeout: 180_000 });

let fixture: AdminFixture;
let place: ReturnType<typeof temporaryHome>;

beforeAll(async () => {
  fixture = await startAdminFixture(`
  - model_name: waiting
    provider_params:
      model: openai/gpt-waiting
      api_key: os.environ/HEARTH_TEST_UNSET_KEY
`);
  place = temporaryHome();
});

afterAll(async () => {
  place?.remove();
  await fixture?.stop();
});

/** Runs the CLI against the gateway of this test. */
const hearth = (
  words: readonly string[],
  env: Readonly<Record<string, string>> = {
    GATEWAY_URL: fixture.url,
    PROXY_MASTER_KEY: MASTER_KEY,
  },
  input?: string,
): Promise<CommandResult> =>
  runHearth(words, { HEARTH_HOME: place.home.root, ...env }, input);

test("a key is created, listed, blocked and unblocked", async () => {
  const created = await hearth([
    ..."keys new --alias anna-laptop --user anna --models mock --budget 5 --per 1mo --rpm 60".split(
      " ",
    ),
  ]);
  expect(created.code).toBe(0);
  const [key = ""] = created.out.split("\n");
  expect(key).toMatch(/^sk-[\w-]{22}$/);
  // The variable of every example in docs/clients.md.
  expect(created.out).toContain(
    `export HEARTH_KEY=…\n  curl -sS ${fixture.url}/v1/chat/completions -H "Authorization: Bearer $HEARTH_KEY"`,
  );
  expect((await fixture.chat(key, "hello")).status).toBe(200);

  const listed = await hearth(["keys", "list", "--user", "anna"]);
  expect(listed).toMatchObject({ code: 0, error: "" });
  expect(listed.out).toMatch(
    /● active {2}anna-laptop {2}sk-\.\.\..{4} {2}anna {2}.*\$ 5\.00 +(< )?[\d.]+ % +\d+ \w+, \d\d:00/,
  );
  expect(listed.out).not.toContain(key);

  const blocked = await hearth(["keys", "block", "anna-laptop"]);
  expect(blocked.out).toContain('Key "anna-laptop" blocked');
  await expect
    .poll(async () => (await fixture.chat(key, "again")).status, PATIENT)
    .toBe(401);
  await hearth(["keys", "unblock", "anna-laptop"]);
  await expect
    .poll(async () => (await fixture.chat(key, "again")).status, PATIENT)
    .toBe(200);
});

test("a key without an alias is named as lists show it", async () => {
  const created = await hearth(["keys", "new", "--expires", "1d"]);
  const [key = ""] = created.out.split("\n");
  const masked = `sk-...${key.slice(-4)}`;
  expect((await hearth(["keys", "show", masked])).out).toContain(masked);
  const updated = await hearth([
    "keys",
    "update",
    masked,
    "--expires",
    "never",
  ]);
  expect(updated.out).toContain(`Key "${masked}" updated.`);
  expect((await hearth(["keys", "show", masked])).out).not.toContain(
    "active until",
  );
});

test("a key is changed, shown, rotated and deleted", async () => {
  const created = await hearth(
    "keys new --alias ben-phone --user ben --budget 5 --rpm 60".split(" "),
  );
  const [key = ""] = created.out.split("\n");
  await fixture.chat(key, "hello");

  const update = "keys update ben-phone --budget 10 --per 1mo --rpm none";
  expect((await hearth(update.split(" "))).out).toContain(
    'Key "ben-phone" updated.',
  );
  const shown = await hearth(["keys", "show", "ben-phone"]);
  expect(shown).toMatchObject({ code: 0, error: "" });
  expect(shown.out).toMatch(/^ben-phone has \$ [\d.]+ of \$ 10\.00 left\.$/m);
  expect(shown.out).toContain("owner: ben");
  expect(shown.out).not.toContain("requests per minute");

  const rotated = await hearth(
    "keys rotate ben-phone --grace 24h --json".split(" "),
  );
  const { key: newKey } = JSON.parse(rotated.out) as { key: string };
  expect(newKey).not.toBe(key);
  for (const each of [key, newKey]) {
    await expect
      .poll(async () => (await fixture.chat(each, "again")).status, PATIENT)
      .toBe(200);
  }

  const asked = await hearth(["keys", "delete", "ben-phone"]);
  expect(asked.code).toBe(2);
  expect(asked.error).toContain(
    'deleting key "ben-phone" requires confirmation',
  );
  expect(
    (await hearth(["keys", "delete", "ben-phone", "--yes"])).out,
  ).toContain('Key "ben-phone" deleted.');
  await expect
    .poll(async () => (await fixture.chat(newKey, "gone")).status, PATIENT)
    .toBe(401);
});

test("models of a key, a user or a team that do not exist are named, with what was meant", async () => {
  const unknown = [
    'hearth: no model is named "mokc" (did you mean "mock"?). Run `hearth models list` for all models.',
    'hearth: no model is named "later-model". Run `hearth models list` for all models.',
    "",
  ].join("\n");
  const models = ["--models", "mock,mokc,later-model,mock/*,all-team-models"];
  const reports = [
    await hearth(["keys", "new", "--alias", "with-unknown", ...models]),
    await hearth(["keys", "update", "with-unknown", ...models]),
    await hearth(["users", "new", "with-unknown", ...models]),
    await hearth(["users", "update", "with-unknown", ...models]),
    await hearth(["teams", "new", "with-unknown", ...models]),
    await hearth(["teams", "update", "with-unknown", ...models]),
  ];
  expect(reports.map(({ code, error }) => ({ code, error }))).toEqual(
    reports.map(() => ({ code: 0, error: unknown })),
  );
});

test("the suggested call uses an available model", async () => {
  const { out } = await hearth(["keys", "new", "--models", "waiting,mock"]);
  expect(out).toContain('"model":"mock"');
  const pending = await hearth(["keys", "new", "--models", "waiting"]);
  expect(pending.out).toContain("No model that it may call is available yet");
  expect(pending.out).not.toContain("curl");
});

test("every command prints JSON", async () => {
  const created = JSON.parse(
    (
      await hearth(
        "keys new --alias as-json --end-user-header x-user --json".split(" "),
      )
    ).out,
  ) as Record<string, string>;
  expect(created["key"]).toMatch(/^sk-/);
  expect(created["metadata"]).toEqual({ end_user_header: "x-user" });
  const { keys, total } = JSON.parse(
    (await hearth(["keys", "list", "--json"])).out,
  ) as { keys: readonly unknown[]; total: number };
  expect(keys).toHaveLength(total);
  const blocked = await hearth([
    "keys",
    "block",
    String(created["token"]),
    "--json",
  ]);
  expect(JSON.parse(blocked.out)).toMatchObject({ blocked: true });
});

test.each([
  [
    ["keys", "new", "--budget", "lots"],
    2,
    '--budget must be a number, not "lots"',
  ],
  [["keys", "new", "--per", "1mo"], 2, "--per requires --budget"],
  [
    ["keys", "new", "--end-user-header", "not a header"],
    2,
    "must be the name of an HTTP header",
  ],
  [
    ["keys", "new", "--budget", "-1"],
    2,
    "--budget must be at least 0 dollars.",
  ],
  [["keys", "new", "--per", "1x", "--budget", "1"], 2, "--per must be a whole"],
  [["keys", "new", "--models", "mock,"], 2, "--models must not be empty."],
  [["keys", "new", "--alias", "as-json"], 2, "--alias already exists"],
  [["keys", "show", ""], 2, "key must not be empty, for example"],
  [["keys", "list", "--user", "anan"], 2, 'did you mean "anna"?'],
  [["keys", "show", "sk-...zzzz"], 2, 'key "sk-...zzzz" not found.'],
  [["keys", "block", "unknown"], 2, 'key with alias "unknown" not found'],
  [["keys", "block", "sk-a-secret"], 2, "must not be a command-line argument"],
  [["keys", "block"], 2, "key is required"],
  [["keys", "update", "as-json"], 2, "nothing to change"],
  [["keys", "show", "as-jsom"], 2, 'did you mean "as-json"?'],
  [
    ["keys", "new", "--team", "missing"],
    2,
    "List or create teams with `hearth teams`",
  ],
  [["keys", "lst"], 2, 'did you mean "list"?'],
  [["keys", "list", "--most", "0"], 2, "at least 1"],
] as const)("%j is rejected with a hint", async (words, code, says) => {
  const rejected = await hearth(words);
  expect(rejected.code).toBe(code);
  expect(rejected.error).toContain(says);
  expect(rejected.error.trim().split("\n")).toHaveLength(1);
});

test("a missing gateway or master key is reported with the fix", async () => {
  expect((await hearth(["keys", "list"], {})).error).toContain(
    "run `hearth up` to start one",
  );
  expect(
    (await hearth(["keys", "list"], { GATEWAY_URL: fixture.url })).error,
  ).toContain("set PROXY_MASTER_KEY");
  const away = await hearth(["keys", "list", "--url", "http://127.0.0.1:1"], {
    PROXY_MASTER_KEY: MASTER_KEY,
  });
  expect(away.code).toBe(1);
  expect(away.error).toContain("does not answer");
  const unsendable = await hearth(["keys", "list"], {
    GATEWAY_URL: fixture.url,
    PROXY_MASTER_KEY: "sk-1\nsk-2",
  });
  expect(unsendable).toMatchObject({
    code: 1,
    error: `hearth: the key for the gateway at ${fixture.url} has a character that HTTP does not allow, such as a line break: set it again (the master key is PROXY_MASTER_KEY).\n`,
  });
});

test("a provider key is stored, and the models that wait for it are ready at once", async () => {
  const store = (provider: string, key: string) =>
    hearth(["models", "key", provider], undefined, `${key}\n`);
  expect((await hearth(["models", "list"])).out).toMatch(
    /waiting +pending {2}[^]*\nHEARTH_TEST_UNSET_KEY +waiting\n/,
  );
  expect((await store("openia", "sk-1")).error).toContain(
    'unknown provider "openia" (did you mean "openai"?)',
  );
  expect((await store("openai", "")).error).toContain("no key was given");
  const tested = await hearth(["models", "test", "waiting"]);
  expect(tested.out).toContain(
    "store its key with `hearth models key HEARTH_TEST_UNSET_KEY`",
  );
  for (const key of ["sk-first", "sk-second"]) {
    const stored = await store("HEARTH_TEST_UNSET_KEY", key);
    expect(stored).toMatchObject({ code: 0, error: "" });
    expect(stored.out).toContain("HEARTH_TEST_UNSET_KEY stored, encrypted.");
    expect(stored.out).not.toContain(key);
  }
  expect((await hearth(["models", "list"])).out).toMatch(/waiting +ready/);
  expect((await store("openai", "sk-third")).error).toContain(
    'no model of "openai" waits for a key. To replace a stored one, name its variable',
  );
});

test("a model is switched off, listed as off, and switched on", async () => {
  expect((await hearth(["models", "off", "wating"])).error).toContain(
    'unknown model "wating" (did you mean "waiting"?)',
  );
  const off = await hearth(["models", "off", "waiting"]);
  expect(off).toMatchObject({ code: 0, error: "" });
  expect(off.out).toContain("Switch it on with `hearth models on waiting`.");
  expect((await hearth(["models", "list"])).out).toMatch(/waiting +off/);
  expect((await hearth(["models", "test", "waiting"])).out).toContain("‖ off");
  const on = await hearth(["models", "on", "waiting", "--json"]);
  expect(JSON.parse(on.out)).toEqual({
    model: "waiting",
    off: false,
    deployments: 1,
  });
  expect((await hearth(["models", "list"])).out).toMatch(/waiting +ready/);
});

test("LiteLLM's keys are imported with one command", async () => {
  const litellm = await makeLitellmTables(fixture.databaseUrl);
  try {
    await litellm.run(USUAL_DATA);
    const env = {
      DATABASE_URL: fixture.databaseUrl,
      PROXY_MASTER_KEY: MASTER_KEY,
      LITELLM_DATABASE_URL: litellm.url,
    };
    // The import is another program, to which the command hands its output.
    const runImport = (option: string): Promise<CommandResult> =>
      startHearth(["import", "litellm", option], {
        HEARTH_HOME: place.home.root,
        ...env,
      }).ended;
    const dry = await runImport("--dry-run");
    expect(dry).toMatchObject({ code: 0, error: "" });
    expect(dry.out).toContain("nothing was written");
    const done = await runImport("--json");
    expect(JSON.parse(done.out)).toMatchObject({ dryRun: false });
    expect((await fixture.chat("sk-litellm-key-1", "hello")).status).toBe(200);
  } finally {
    await litellm.close();
  }
  expect((await hearth(["import", "litellm"], {})).error).toContain(
    "run `hearth up` to start it",
  );
});
