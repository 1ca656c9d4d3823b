import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  type Json,
  modelYaml,
  OUTPUT_PRICE,
  startTestbed,
  startTestGateway,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import type { MockProvider } from "../../test/servers/provider.ts";
import { query } from "../database/pool.ts";
import { insertRow, updateRows } from "../database/rows.ts";
import { hashKey } from "../access/keys.ts";

let testbed: Testbed;
let gateway: TestGateway;
let provider: MockProvider;

beforeAll(async () => {
  testbed = await startTestbed();
  ({ gateway, provider } = testbed);
});

afterAll(() => testbed?.stop());

const ONE_CALL = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;
/** Over after one call. */
const SMALL = ONE_CALL / 2;

const pool = () => gateway.running.gateway.pool;

async function refusalAfterOneCall(
  key: string,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const first = await gateway.chat(key, "one", fields);
  expect(first.status).toBe(200);
  const second = await gateway.chat(key, "two", fields);
  expect(second.json["error"]?.["type"]).toBe("budget_exceeded");
  return String(second.json["error"]?.["message"]);
}

test("a used-up team budget rejects calls and names the team", async () => {
  await insertRow(pool(), "teams", { team_id: "t1", max_budget: SMALL });
  const key = await gateway.createKey({ team_id: "t1", max_budget: 100 });
  expect(await refusalAfterOneCall(key)).toContain("Team=t1 Current cost");
});

/** Between the ledger's turns: once it has what was spent, until totals that changed are read again. */
async function post(path: string, body: object): Promise<Json> {
  const { ledger } = gateway.running.gateway;
  await ledger.flush();
  const { status, json } = await gateway.request("POST", path, body);
  expect(status).toBe(200);
  await ledger.flush();
  return json;
}

test.each([
  ["team", "team_id"],
  ["user", "user_id"],
] as const)(
  "a %s that is created again under the id of a deleted one starts without its spend",
  async (noun, field) => {
    const id = `${noun} again`;
    const created = () =>
      post(`/${noun}/new`, { [field]: id, max_budget: SMALL });
    await created();
    await refusalAfterOneCall(await gateway.createKey({ [field]: id }));
    await post(`/${noun}/delete`, { [`${field}s`]: [id] });
    expect((await created())["spend"]).toBe(0);
    await refusalAfterOneCall(await gateway.createKey({ [field]: id }));
    await expect.poll(differences).toEqual([]);
  },
);

test("a key and a member that are created again start without their former spend", async () => {
  const team_id = "team of members";
  const member = { role: "user", user_id: "member again" };
  const key = `sk-${"again".repeat(5)}`;
  await post("/team/new", { team_id });
  for (let time = 0; time < 2; time++) {
    await post("/team/member_add", {
      team_id,
      member,
      max_budget_in_team: SMALL,
    });
    await post("/key/generate", {
      key,
      team_id,
      user_id: member.user_id,
      max_budget: SMALL,
    });
    expect(await refusalAfterOneCall(key)).toContain("exceeded! Current");
    await post("/key/update", { key, max_budget: 100 });
    const { json } = await gateway.chat(key, "three");
    expect(json["error"]?.["message"]).toContain("Team member=");
    await post("/key/delete", { keys: [key] });
    await post("/team/member_delete", {
      team_id,
      user_id: member.user_id,
    });
  }
  await expect.poll(differences).toEqual([]);
});

test("a rejection names the time at which the budget resets in a header", async () => {
  const key = await gateway.createKey({
    max_budget: SMALL,
    budget_duration: "1mo",
  });
  await gateway.chat(key, "first");
  const refused = await gateway.chat(key, "second");
  const now = new Date();
  const next = new Date(
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
  ).toISOString();
  expect(refused.headers.get("x-hearth-budget-reset-at")).toBe(next);
});

async function userWithTwoKeys(
  name: string,
  membership: Readonly<Record<string, unknown>> | null,
): Promise<Record<"personal" | "team", string>> {
  const ids = { user_id: `user ${name}`, team_id: `team ${name}` };
  await insertRow(pool(), "users", {
    user_id: ids.user_id,
    max_budget: SMALL,
  });
  await insertRow(pool(), "teams", { team_id: ids.team_id });
  if (membership !== null) {
    await insertRow(pool(), "team_members", { ...ids, ...membership });
  }
  return {
    personal: await gateway.createKey({ user_id: ids.user_id }),
    team: await gateway.createKey(ids),
  };
}

const differences = () => query(pool(), "SELECT * FROM spend_check");

test.each([
  ["personal", "team"],
  ["team", "personal"],
] as const)(
  "the budget of a user who accepted the membership: a %s key spends it, a %s key is rejected",
  async (first, second) => {
    const name = `accepted, ${first} first`;
    const keys = await userWithTwoKeys(name, { accepted: true });
    expect((await gateway.chat(keys[first], "one")).status).toBe(200);
    for (const key of [keys[second], keys[first]]) {
      expect((await gateway.chat(key, "two")).json["error"]).toMatchObject({
        type: "budget_exceeded",
        message: expect.stringContaining(`User=user ${name}`),
      });
    }
    await expect.poll(differences).toEqual([]);
  },
);

test.each([
  ["no membership", null],
  ["a membership not accepted", {}],
])(
  "the budget of a user with %s is spent by personal keys only, whichever comes first",
  async (what, membership) => {
    const teamFirst = await userWithTwoKeys(`${what}, team`, membership);
    for (const text of ["one", "two"]) {
      expect((await gateway.chat(teamFirst.team, text)).status).toBe(200);
    }
    expect(await refusalAfterOneCall(teamFirst.personal)).toContain("User=");

    const name = `${what}, personal`;
    const personalFirst = await userWithTwoKeys(name, membership);
    expect(await refusalAfterOneCall(personalFirst.personal)).toContain(
      "User=",
    );
    expect((await gateway.chat(personalFirst.team, "three")).status).toBe(200);

    const total = {
      entity: `user:user ${name}`,
      spend: expect.closeTo(ONE_CALL, 9),
    };
    await expect
      .poll(() =>
        query(
          pool(),
          "SELECT entity, spend FROM spend_totals WHERE entity = $1",
          [total.entity],
        ),
      )
      .toEqual([total]);
    await expect.poll(differences).toEqual([]);
  },
);

test("used-up budgets of a member, an organization, an end user and a tag reject calls", async () => {
  await insertRow(pool(), "users", { user_id: "u2" });
  await insertRow(pool(), "teams", { team_id: "t3" });
  await insertRow(pool(), "team_members", {
    team_id: "t3",
    user_id: "u2",
    max_budget: SMALL,
  });
  const member = await gateway.createKey({ user_id: "u2", team_id: "t3" });
  expect(await refusalAfterOneCall(member)).toContain("Team member=t3/u2");

  await insertRow(pool(), "organizations", {
    organization_id: "o1",
    max_budget: SMALL,
  });
  const ofOrganization = await gateway.createKey({ organization_id: "o1" });
  expect(await refusalAfterOneCall(ofOrganization)).toContain(
    "Organization=o1",
  );

  const plain = await gateway.createKey({});
  await insertRow(pool(), "end_users", { user_id: "e1", max_budget: SMALL });
  expect(await refusalAfterOneCall(plain, { user: "e1" })).toContain(
    "End user=e1",
  );
  await insertRow(pool(), "tags", { name: "red", max_budget: SMALL });
  expect(
    await refusalAfterOneCall(plain, { metadata: { tags: ["red"] } }),
  ).toContain("Tag=red");
  expect((await gateway.chat(plain, "untagged")).status).toBe(200);
});

test("a tier applies where the key sets nothing itself", async () => {
  await insertRow(pool(), "budgets", { budget_id: "small", max_budget: SMALL });
  const tiered = await gateway.createKey({ budget_id: "small" });
  await refusalAfterOneCall(tiered);
  const own = await gateway.createKey({ budget_id: "small", max_budget: 1 });
  await gateway.chat(own, "one");
  expect((await gateway.chat(own, "two")).status).toBe(200);
});

test("an alias has a separate budget on a key", async () => {
  const key = await gateway.createKey({
    model_max_budget: { mock: { budget_limit: SMALL, time_period: "1d" } },
  });
  expect(await refusalAfterOneCall(key)).toContain("Model=mock");
});

test("a temporary increase counts until it expires", async () => {
  const key = await gateway.createKey({
    max_budget: SMALL,
    temp_budget_increase: 1,
    temp_budget_expiry: new Date(Date.now() + 1_500).toISOString(),
  });
  expect((await gateway.chat(key, "one")).status).toBe(200);
  expect((await gateway.chat(key, "two")).status).toBe(200);
  await expect
    .poll(async () => (await gateway.chat(key, `later ${Date.now()}`)).status, {
      timeout: 5_000,
    })
    .toBe(400);
});

test("a budget is available again when its window ends", async () => {
  const key = await gateway.createKey({
    max_budget: SMALL,
    budget_duration: "2s",
  });
  expect((await gateway.chat(key, "one")).status).toBe(200);
  await expect
    .poll(async () => (await gateway.chat(key, `x ${Date.now()}`)).status, {
      timeout: 5_000,
      interval: 100,
    })
    .toBe(200);
});

test("a raised budget and a blocked key take effect at once", async () => {
  const key = await gateway.createKey({ max_budget: SMALL });
  await refusalAfterOneCall(key);
  const token = hashKey(key);
  await updateRows(pool(), "keys", { token }, { max_budget: 5 });
  await expect
    .poll(async () => (await gateway.chat(key, "raised")).status, {
      timeout: 1_000,
    })
    .toBe(200);
  await updateRows(pool(), "keys", { token }, { blocked: true });
  await expect
    .poll(async () => (await gateway.chat(key, "blocked")).status, {
      timeout: 1_000,
    })
    .toBe(401);
});

test("requests, tokens and parallel calls are limited and reported in headers", async () => {
  const key = await gateway.createKey({ rpm_limit: 2 });
  const first = await gateway.chat(key, "one");
  expect(first.headers.get("x-ratelimit-limit-requests")).toBe("2");
  expect(first.headers.get("x-ratelimit-remaining-requests")).toBe("1");
  await gateway.chat(key, "two");
  const third = await gateway.chat(key, "three");
  expect(third.status).toBe(429);
  expect(third.json["error"]?.["type"]).toBe("rate_limit_exceeded");
  expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);

  const single = await gateway.createKey({ max_parallel_requests: 1 });
  const slow = gateway.chat(single, '[mock]{"delayMs":300}');
  await expect
    .poll(
      async () =>
        (await gateway.chat(single, `at once ${Math.random()}`)).status,
    )
    .toBe(429);
  expect((await slow).status).toBe(200);
  expect((await gateway.chat(single, "after")).status).toBe(200);
});

test("of 200 simultaneous calls on a budget for ten, none is rejected as budget_exceeded while budget remains", async () => {
  const key = await gateway.createKey({ max_budget: 10 * ONE_CALL });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, at) =>
      gateway.chat(key, `[mock]{"delayMs":20} ${at}`.replace(/ \d+$/, ""), {
        max_tokens: 4,
        seed: at,
      }),
    ),
  );
  const paid = answers.filter((answer) => answer.status === 200).length;
  expect(paid).toBeGreaterThanOrEqual(10);
  expect(paid).toBeLessThanOrEqual(11);
  const types = new Set(
    answers
      .filter((answer) => answer.status !== 200)
      .map((answer) => answer.json["error"]?.["type"]),
  );
  for (const type of types) {
    expect(["budget_exceeded", "budget_held"]).toContain(type);
  }
});

test("strict mode rejects a call that may not fit, and never overshoots", async () => {
  const searching = `  - { model_name: claude, provider_params: { model: anthropic/claude-sonnet-4-5, api_base: "${provider.url}", api_key: x } }\n`;
  const strict = await startTestGateway({
    databaseUrl: (database2 = await throwAwayDatabase()).url,
    providerUrl: provider.url,
    yaml: `${modelYaml(provider.url, searching)}general_settings: { budget_mode: strict }\n`,
  });
  try {
    const searcher = await strict.createKey({ max_budget: 0.04 });
    const errorOf = async (search: object) =>
      (
        await strict.chat(searcher, "search", {
          model: "claude",
          max_tokens: 1,
          tools: [
            { type: "web_search_20250305", name: "web_search", ...search },
          ],
        })
      ).json["error"]?.["type"];
    expect(await errorOf({})).toBe("budget_exceeded");
    expect(await errorOf({ max_uses: 3 })).not.toBe("budget_exceeded");
    // Of a model without a price for searches: infinity times 0 is no number.
    const tool = { type: "web_search", max_uses: Number.MAX_VALUE };
    const countless = { max_tokens: 100_000, tools: [tool, tool] };
    const rejected = await strict.chat(
      await strict.createKey({ max_budget: ONE_CALL }),
      "countless",
      countless,
    );
    expect(rejected.json["error"]?.["type"]).toBe("budget_exceeded");
    const key = await strict.createKey({ max_budget: 3 * ONE_CALL });
    const unbounded = await strict.chat(key, "unbounded");
    expect(unbounded.json["error"]?.["message"]).toMatch(/max_tokens/);
    // Servers differ in which of the two they follow.
    const twice = { max_completion_tokens: 4, max_tokens: 100_000 };
    expect(
      (await strict.chat(key, "twice", twice)).json["error"]?.["type"],
    ).toBe("budget_exceeded");
    expect((await strict.chat(key, "small", { max_tokens: 4 })).status).toBe(
      200,
    );
  } finally {
    await strict.stop();
    await database2.drop();
  }
});

let database2: Awaited<ReturnType<typeof throwAwayDatabase>>;
