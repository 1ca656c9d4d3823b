import { afterAll, beforeAll, expect, test } from "vitest";
import { startAdminFixture, type AdminFixture } from "../test/servers/admin.ts";
import { MASTER_KEY, type Json } from "../test/servers/gateway.ts";
import { runHearth } from "../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";

let fixture: AdminFixture;
let place: ReturnType<typeof temporaryHome>;

beforeAll(async () => {
  fixture = await startAdminFixture();
  place = temporaryHome();
});

afterAll(async () => {
  place?.remove();
  await fixture?.stop();
});

/** Runs the CLI against the gateway of this test. */
const hearth = (...words: readonly string[]) =>
  runHearth(words, {
    HEARTH_HOME: place.home.root,
    GATEWAY_URL: fixture.url,
    PROXY_MASTER_KEY: MASTER_KEY,
  });

test("users and teams are created, named, changed and deleted", async () => {
  await hearth(
    "users",
    "new",
    "u1",
    "--full-name",
    "Anna Berg",
    "--budget",
    "20",
  );
  expect((await hearth("users", "new", "cleo's tablet")).out).toContain(
    "`hearth keys new --user 'cleo'\\''s tablet'`",
  );
  const created = await hearth("teams", "new", "Kitchen", "--json");
  const { team_id: id } = JSON.parse(created.out) as { team_id: string };
  expect((await hearth("teams", "add", "kitchen", "anna berg")).out).toContain(
    'is now a member of team "kitchen"',
  );
  expect((await hearth("teams", "add", "kitchen", "cleo")).out).toContain(
    'User "cleo" created and added to team "kitchen".',
  );
  expect((await hearth("teams", "new", "kitchen")).error).toContain(
    'team "kitchen" already exists',
  );
  await hearth(
    "keys",
    "new",
    "--alias",
    "stove",
    "--user",
    "Anna Berg",
    "--team",
    "Kitchen",
  );

  const keys = await hearth("keys", "list", "--team", "KITCHEN");
  expect(keys.out).toMatch(/stove .*Anna Berg, team Kitchen/);
  expect(keys.out).not.toContain(id);
  const changes = await hearth("audit", "--type", "key", "--author", "OPER");
  expect(changes.out).toMatch(
    / operator +created +key stove +.*User: u1.*Name: stove/,
  );
  const mistyped = await hearth("keys", "new", "--team", "Kitchn");
  expect(mistyped.code).toBe(2);
  expect(mistyped.error).toContain(
    'hearth: team "Kitchn" not found (did you mean "Kitchen"?). List or create teams with `hearth teams`',
  );

  expect((await hearth("users", "list", "--search", "berg")).out).toMatch(
    /Anna Berg +u1 +1 +\$ 0\.00 of \$ 20\.00/,
  );
  const user = await hearth("users", "show", "anna berg");
  expect(user.out).toContain("Keys: stove");
  expect(user.out).toContain("Teams: Kitchen");
  await hearth("users", "update", "u1", "--budget", "none");
  expect((await hearth("users", "show", "u1")).out).not.toContain("of $ 20.00");
  expect((await hearth("users", "show", "Ana Berg")).error).toContain(
    'user "Ana Berg" not found (did you mean "Anna Berg"?)',
  );

  await hearth(
    "teams",
    "update",
    "Kitchen",
    "--name",
    "Galley",
    "--budget",
    "7",
  );
  expect((await hearth("teams", "list")).out).toMatch(/Galley .*of \$ 7\.00/);
  expect((await hearth("teams", "show", "galley")).out).toMatch(/u1 +member/);
  expect((await hearth("budgets")).out).toMatch(/team +Galley/);
  expect((await hearth("teams", "delete", "Galley", "--yes")).out).toContain(
    'Team "Galley" and its keys deleted.',
  );
  expect((await hearth("keys", "list", "--json")).out).not.toContain("stove");
});

test("a budget that is used up is listed first and sets the exit code", async () => {
  await fixture.post("/organization/new", {
    organization_alias: "Acme",
    max_budget: 7,
  });
  const key = await fixture.createKey({
    key_alias: "spent",
    max_budget: 0.000001,
  });
  await fixture.chat(key, "a first call that costs more than the budget");
  await expect
    .poll(async () => (await fixture.chat(key, "another")).status, {
      timeout: 20_000,
    })
    .toBe(400);
  // Lists show what is in the ledger, which follows the calls after a moment.
  await fixture.running.gateway.ledger.flush();
  const listed = await hearth("budgets", "--json");
  expect(listed.code).toBe(1);
  expect(JSON.parse(listed.out)).toMatchObject({
    budgets: [
      { of: "key", name: "spent" },
      { of: "organization", name: "Acme", budget_in_force: 7 },
    ],
  });
});

test("models are listed and tried, and a conversation shows its cost", async () => {
  expect((await hearth("models", "list")).out).toMatch(/mock +serving/);
  expect(await hearth("models", "test", "mock")).toMatchObject({
    code: 0,
    out: expect.stringContaining("● answers"),
  });
  for (const words of [
    ["models", "test", "mokc"],
    ["models", "off", "mokc"],
    ["chat", "mokc", "Hello"],
  ]) {
    expect(await hearth(...words)).toEqual({
      code: 2,
      out: "",
      error:
        'hearth: unknown model "mokc" (did you mean "mock"?). Run `hearth models list` for all models.\n',
    });
  }
  const answered = await hearth("chat", "mock", "Hello");
  expect(answered).toMatchObject({ code: 0, error: "" });
  expect(answered.out).toMatch(/\n\d+ tokens, \$ [\d.]+\n$/);
  const whole = JSON.parse(
    (await hearth("chat", "mock", "Hello", "--json")).out,
  );
  expect(whole).toMatchObject({ model: "mock", cost: expect.any(Number) });
  expect(await hearth("chat", "mock", " ")).toMatchObject({
    code: 2,
    error: expect.stringContaining("the prompt is empty"),
  });
});

test("a user or team is found by its name although a hundred newer names contain it", async () => {
  const { pool } = fixture;
  await hearth("users", "new", "n1", "--full-name", "Ann", "--budget", "5");
  await hearth("teams", "new", "Dev", "--budget", "5");
  await pool.query(
    "INSERT INTO users (user_id, user_alias) SELECT 'n1-' || n, 'Ann ' || n FROM generate_series(1, 100) AS n",
  );
  await pool.query(
    "INSERT INTO teams (team_id, team_alias) SELECT 'dev-' || n, 'Dev ' || n FROM generate_series(1, 100) AS n",
  );
  const key = JSON.parse(
    (await hearth("keys", "new", "--user", "ann", "--team", "dev", "--json"))
      .out,
  );
  expect(key).toMatchObject({ user_id: "n1" });
  expect((await hearth("users", "show", "n1")).out).toContain("Ann\n");
  expect((await hearth("teams", "show", "dev")).out).toContain("of $ 5.00");
  expect((await hearth("teams", "new", "dev")).error).toContain(
    'team "dev" already exists',
  );
});

test("a team is not renamed to the name of another, and may change the case of its own", async () => {
  await hearth("teams", "new", "Attic");
  await hearth("teams", "new", "Cellar");
  expect(await hearth("teams", "update", "Cellar", "--name", "attic")).toEqual({
    code: 2,
    out: "",
    error:
      'hearth: team "attic" already exists: choose another name, or run `hearth teams update attic` to change it.\n',
  });
  await hearth("teams", "update", "Attic", "--name", "ATTIC");
  expect((await hearth("teams", "show", "attic")).out).toContain("ATTIC");
});

test("names that are taken and members that are not there are usage errors", async () => {
  await hearth("users", "new", "dora");
  await hearth("teams", "new", "Loft");
  const errorOf = async (...words: readonly string[]) => {
    const { code, error } = await hearth(...words);
    return [code, error];
  };
  expect(await errorOf("users", "new", "dora")).toEqual([
    2,
    'hearth: user "dora" already exists: choose another name, or run `hearth users update dora` to change it.\n',
  ]);
  const absent =
    ' is not a member of team "Loft": run `hearth teams show Loft` for its members.\n';
  expect(await errorOf("teams", "remove", "Loft", "dora")).toEqual([
    2,
    `hearth: "dora"${absent}`,
  ]);
  expect(await errorOf("teams", "remove", "Loft", "nosuch")).toEqual([
    2,
    `hearth: "nosuch"${absent}`,
  ]);
  await hearth("teams", "add", "Loft", "dora");
  expect(await errorOf("teams", "add", "Loft", "dora")).toEqual([
    2,
    'hearth: "dora" is already a member of team "Loft".\n',
  ]);
  expect((await hearth("teams", "remove", "Loft", "dora")).code).toBe(0);
  expect(await errorOf("keys", "new", "--expires", "0d")).toEqual([
    2,
    'hearth: --expires must be at least 1 s, or never, not "0d".\n',
  ]);
});

test("shells complete commands, options and names", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, out } = await hearth("completion", shell);
    expect(code).toBe(0);
    expect(out).toContain("hearth complete --");
  }
  expect((await hearth("completion", "bsh")).error).toContain(
    'unknown shell "bsh" (did you mean "bash"?)',
  );
  await fixture.createKey({ key_alias: "for-completion" });
  const completed = async (...words: readonly string[]) =>
    (await hearth("complete", "--", ...words)).out
      .split("\n")
      .map((line) => line.split("\t")[0]);
  expect(await completed("mod")).toContain("models");
  expect(await completed("keys", "")).toContain("rotate");
  expect(await completed("keys", "rotate", "--gr")).toContain("--grace");
  expect(await completed("keys", "show", "for-")).toContain("for-completion");
});

test("the budgets of members reset with the team's, or as an option says", async () => {
  const resets = async (name: string) =>
    (JSON.parse((await hearth("teams", "show", name, "--json")).out) as Json)[
      "team_info"
    ]?.["team_member_budget_duration"];
  const budgets = ["--budget", "9", "--per", "1mo", "--member-budget", "3"];
  await hearth("teams", "new", "Monthly", ...budgets);
  expect(await resets("monthly")).toBe("1mo");
  await hearth("teams", "update", "Monthly", "--member-per", "1d");
  expect(await resets("monthly")).toBe("1d");
  await hearth("teams", "update", "Monthly", "--member-per", "none");
  expect(await resets("monthly")).toBe(null);
  expect(
    (await hearth("teams", "update", "Monthly", "--member-per", "1y")).error,
  ).toContain("--member-per must be");
});
