import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { asOperator } from "../supervisor/operator.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import { query } from "../../gateway/database/pool.ts";
import type { AdminFixture } from "../servers/admin.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { startRelay } from "../servers/relay.ts";
import {
  clippedTables,
  DESK,
  findViolations,
  openPage,
  showOn,
} from "./browser.ts";
import { startConsoleTestbed } from "./console-testbed.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import {
  confirm,
  mainText as main,
  PATIENT,
  startGatewayTestbed,
  type GatewayTestbed,
} from "./gateway-testbed.ts";

const MARKUP = '<img src=x onerror="document.title=1">';
const hostile = `${MARKUP}${"endless".repeat(20)} 🔥 \u202e`;

let browser: Browser;
let fixture: AdminFixture;
let testbed: GatewayTestbed;
let open: GatewayTestbed["open"];

beforeAll(async () => {
  testbed = await startGatewayTestbed(`
  - model_name: waiting
    provider_params:
      model: openai/gpt-waiting
      api_key: os.environ/HEARTH_TEST_UNSET_KEY
`);
  ({ browser, fixture, open } = testbed);
});
afterAll(() => testbed?.stop());

test("an empty list explains how to create a key", async () => {
  const { page } = await open("/keys");
  expect(await page.textContent("h1")).toBe("No keys yet.");
  expect(await main(page)).toContain("hearth keys new --user anna");
  expect(await findViolations(page)).toEqual([]);
  await page.context().close();
});

/** The times of a call some milliseconds ago. */
function during(ago: number, tookMs: number) {
  const end = Date.now() - ago;
  return {
    started_at: new Date(end - tookMs).toISOString(),
    ended_at: new Date(end).toISOString(),
  };
}

/** Keys of a household in every state. */
async function fillHousehold(): Promise<string> {
  const month = { budget_duration: "1mo" };
  const make = async (alias: string, fields: object, spends: number[] = []) => {
    const token = hashKey(
      await fixture.createKey({ key_alias: alias, ...fields }),
    );
    await fixture.spend(
      ...spends.map((spend, index) => ({
        api_key: token,
        spend,
        prompt_tokens: 900 + index * 37,
        model_group: index % 3 === 0 ? "claude-small" : "gpt-mini",
        ...during(index * DAY_MS, 700 + ((index * 377) % 900)),
      })),
    );
    return token;
  };
  await make("anna-phone", { user_id: "anna", max_budget: 2, ...month }, [1.9]);
  await make("robot", { user_id: "ben", max_budget: 1, ...month }, [1.25]);
  await make("guest", { duration: "30d", max_budget: 0.5 });
  await make("old-script", { user_id: "ben", blocked: true });
  const expired = await make("trial", { duration: "1d" }, [0.02]);
  await query(
    fixture.pool,
    "UPDATE keys SET expires = now() - interval '2 days' WHERE token = $1",
    [expired],
  );
  return make(
    "anna-editor",
    { user_id: "anna", max_budget: 20, rpm_limit: 60, ...month },
    Array.from({ length: 20 }, (_, index) => ((index * 7) % 5) / 8 + 0.1),
  );
}

test("each state of a key has a shape and a word, each budget a meter", async () => {
  const token = await fillHousehold();
  const { page } = await open("/keys?sort=key_alias&order=asc");
  expect(await page.textContent("h1")).toBe("1 of 6 keys is over budget.");
  const states = await page.locator("tbody .state").allInnerTexts();
  expect(states.map((each) => each.trim().replace(/ \d.*/, ""))).toEqual([
    "active",
    "nearly used up",
    "active until",
    "blocked",
    "over budget",
    "expired",
  ]);
  expect(await page.locator("tbody .state svg").count()).toBe(6);
  expect(await page.locator("tbody .meter").count()).toBe(4);
  await takePicture(page, "keys-usual");
  await showOn(page, { width: 768, scheme: "light" });
  expect(await clippedTables(page)).toEqual([]);
  await showOn(page, DESK);
  await page.goto(`${testbed.address}/keys/${token}`);
  expect(await main(page)).toContain("Show table");
  expect(await main(page)).toMatch(
    /Latest calls[^]*All calls of this key[^]*Budgets/i,
  );
  expect(await main(page)).toMatch(/median of the last 20 answers/);
  await takePicture(page, "key-usual");
  await page.context().close();
});

test("a key is created, used, rejected at its budget, raised, blocked, rotated and deleted", async () => {
  const { page, complaints } = await open("/keys");
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name").fill("anna-laptop");
  await page.getByLabel("User").fill("anna");
  await page.getByLabel("Budget (USD)").fill("0.00001");
  await page.getByLabel("Budget resets").selectOption("1mo");
  await page.getByLabel("Selected models").check();
  await page.getByLabel("mock").check();
  await page.getByLabel("waiting").check();
  await page.getByLabel("Requests per minute").fill("600");
  await takePicture(page, "key-form");
  await page.getByRole("button", { name: "Create key" }).click();
  await page
    .getByRole("heading", { name: 'Key "anna-laptop" created.' })
    .waitFor();
  const key = (await page.textContent("#the-key")) ?? "";
  expect(key).toMatch(/^sk-[\w-]{22}$/);
  const call = (await page.textContent("#the-call")) ?? "";
  expect(call).toContain(`${fixture.url}/v1/chat/completions`);
  expect(call).toContain('"model":"mock"');
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "key-shown");
  await page.context().close();
  expect(complaints).toEqual([]);
  expect(
    await query(
      fixture.pool,
      "SELECT action, actor FROM audit_log WHERE object_type = 'key' AND object_id = $1",
      [hashKey(key)],
    ),
  ).toEqual([{ action: "created", actor: "operator" }]);

  expect((await fixture.chat(key, "hello")).status).toBe(200);
  await expect
    .poll(async () => (await fixture.chat(key, "again")).status, PATIENT)
    .toBe(400);
  const at = `/keys/${hashKey(key)}`;
  const { page: one } = await open(at);
  await expect
    .poll(async () => {
      await one.reload();
      return one.textContent("h1");
    }, PATIENT)
    .toMatch(/^anna-laptop is over budget until 1 /);
  await expect
    .poll(async () => {
      await one.reload();
      return main(one);
    }, PATIENT)
    .toMatch(/budget exceeded[^]*Budget has been exceeded!/);
  expect(await main(one)).toContain("answered");
  await takePicture(one, "key-spent");
  expect(await findViolations(one)).toEqual([]);

  await one.getByRole("link", { name: "Edit" }).click();
  expect(await one.getByLabel("Name").inputValue()).toBe("anna-laptop");
  expect(await one.getByLabel("mock").isChecked()).toBe(true);
  await one.getByLabel("Budget (USD)").fill("2");
  await one.getByRole("button", { name: "Save changes" }).click();
  await one
    .getByRole("status")
    .getByText('Key "anna-laptop" updated')
    .waitFor();
  expect(await one.textContent("h1")).toContain("of $ 2.00 left");
  await expect
    .poll(async () => (await fixture.chat(key, "more")).status, PATIENT)
    .toBe(200);
  expect(await fixture.get(`/key/info?key=${key}`)).toMatchObject({
    info: {
      rpm_limit: 600,
      budget_duration: "1mo",
      models: ["mock", "waiting"],
    },
  });

  await confirm(one, "Block");
  await one.getByRole("heading", { name: "anna-laptop is blocked." }).waitFor();
  await expect
    .poll(async () => (await fixture.chat(key, "no")).status, PATIENT)
    .toBe(401);
  await confirm(one, "Unblock");
  await one.getByRole("heading", { name: "left." }).waitFor();

  await one.locator("summary", { hasText: "Rotate secret…" }).click();
  await one.getByLabel("Old secret stays valid").selectOption("");
  await one.getByRole("button", { name: "Rotate secret" }).click();
  await one.getByRole("heading", { name: "has a new secret" }).waitFor();
  const renewed = (await one.textContent("#the-key")) ?? "";
  await expect
    .poll(async () => (await fixture.chat(renewed, "new")).status, PATIENT)
    .toBe(200);
  await expect
    .poll(async () => (await fixture.chat(key, "old")).status, PATIENT)
    .toBe(401);

  await one.getByRole("link", { name: "Key details" }).click();
  await confirm(one, "Delete", "anna-desk");
  await one.getByText("Nothing was deleted").waitFor();
  await one.goto(`${testbed.address}/keys/${hashKey(renewed)}`);
  await confirm(one, "Delete", "anna-laptop");
  await one
    .getByRole("status")
    .getByText('Key "anna-laptop" deleted')
    .waitFor();
  expect((await one.goto(`${testbed.address}${at}`))?.status()).toBe(404);
  await one.context().close();
});

test("the gateway's rejections are shown at their fields, and typed values are kept", async () => {
  await fixture.createKey({ key_alias: "taken" });
  const { page } = await open("/keys/new", { javaScript: false });
  const field = (label: string) => page.getByLabel(label, { exact: true });
  const send = () => page.getByRole("button", { name: "Create key" }).click();
  await field("Name").fill("taken");
  await field("Budget (USD)").fill("lots");
  await send();
  expect(await main(page)).toContain("Must be a number, for example 5 or 0.5.");
  await field("Budget (USD)").fill("-5");
  await send();
  expect(await main(page)).toContain("Must be at least 0 dollars");
  expect(await field("Name").inputValue()).toBe("taken");
  const budget = field("Budget (USD)");
  expect(await budget.getAttribute("aria-invalid")).toBe("true");
  await budget.fill("");
  await send();
  expect(await page.locator("#f-key_alias-mistake").innerText()).toContain(
    "Already exists",
  );
  await field("Name").fill("no-team");
  await field("Team").fill("unknown");
  await field("Selected models").check();
  await send();
  expect(await page.locator("#f-models-mistake").innerText()).toContain(
    "Select at least one model",
  );
  await field("mock").check();
  await send();
  expect(await page.locator("#f-team_id-mistake").innerText()).toContain(
    'Team "unknown" not found.',
  );
  await page.context().close();
});

test("by the keyboard alone", async () => {
  const { page } = await open("/keys/new");
  await page.getByLabel("Name").focus();
  await page.keyboard.type("typed");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: 'Key "typed" created.' }).waitFor();
  await page.context().close();
});

test("hostile names run nothing and fit every screen", async () => {
  const key = await fixture.createKey({
    key_alias: hostile,
    user_id: `u ${hostile}`,
    max_budget: 1,
    budget_duration: "1d",
    rpm_limit: 5,
    tags: [hostile],
  });
  await fixture.chat(key, "hi", { model: `${MARKUP}${"x".repeat(200)}` });
  await fixture.spend({
    api_key: hashKey(key),
    model_group: `${MARKUP}${"y".repeat(200)}`,
    spend: 0.95,
  });
  await checkEveryScreen(browser, `${testbed.address}/keys/${hashKey(key)}`, {
    name: "key-hostile",
    heading: /onerror.* left\.$/s,
  });
  const { page } = await open(
    `/keys?search=${encodeURIComponent(MARKUP)}&sort=nonsense&page=x`,
  );
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.goto(`${testbed.address}/keys/${hashKey(key)}/edit`);
  expect(await page.getByLabel("Name").inputValue()).toBe(hostile);
  await page.goto(`${testbed.address}/keys/${hashKey(key)}`);
  await confirm(page, "Delete", hostile);
  await page.getByRole("status").getByText("deleted").waitFor();
  await page.context().close();
});

test("the page of a busy key is of a sensible length on a phone", async () => {
  const key = await fixture.createKey({ key_alias: "busy", rpm_limit: 2 });
  await fixture.spend(
    ...Array.from({ length: 60 }, (_, index) => ({
      api_key: hashKey(key),
      model_group: `model-${index % 9}`,
      spend: 0.01,
      ...during(index * HOUR_MS, 800),
      ...(index % 7 === 0 ? { status: "failure" as const } : {}),
    })),
  );
  for (let call = 0; call < 25; call++) {
    await fixture.chat(key, "hi", { model: call % 2 === 0 ? "none" : "mock" });
  }
  const { page } = await openPage(browser, { width: 360, scheme: "light" });
  await page.goto(`${testbed.address}/keys/${hashKey(key)}`);
  await expect
    .poll(async () => {
      await page.reload();
      return main(page);
    }, PATIENT)
    .toMatch(/invalid request error\s+\d+/);
  expect(
    await page.locator("[aria-label='Rejected calls'] tbody tr").count(),
  ).toBe(2);
  const screens = await page.evaluate<number>(
    "document.documentElement.scrollHeight / innerHeight",
  );
  await takePicture(page, "key-busy-phone");
  expect(screens).toBeLessThan(5);
  await page.context().close();
});

test("a form of another origin changes nothing", async () => {
  const token = hashKey(await fixture.createKey({ key_alias: "guarded" }));
  const { page } = await openPage(browser, DESK);
  await page.goto("data:text/html,<h1>elsewhere</h1>");
  await page.setContent(
    `<form method="post" action="${testbed.address}/keys/${token}/block"><button>go</button></form>`,
  );
  await page.getByRole("button").click();
  await page.waitForLoadState();
  expect(await fixture.get(`/key/info?key=${token}`)).toMatchObject({
    info: { blocked: false },
  });
  await page.context().close();
});

describe("ten thousand keys", () => {
  beforeAll(async () => {
    await query(
      fixture.pool,
      `INSERT INTO keys (token, key_name, key_alias, user_id, max_budget, blocked, expires, created_at)
         SELECT encode(sha256(i::text::bytea), 'hex'), 'sk-...' || lpad(i::text, 4, '0'), 'many-' || i, 'user-' || i % 97,
           CASE WHEN i % 3 = 0 THEN i % 20 END, i % 1000 = 7, CASE WHEN i % 2000 = 9 THEN now() END, now() - i * interval '1 minute'
           FROM generate_series(1, 10000) i`,
    );
    await fixture.spend(
      ...Array.from({ length: 40 }, (_, index) => ({
        api_key: hashKey(String((index + 1) * 3)),
        spend: (index % 9) + 0.5,
      })),
    );
  });

  test("are searched, filtered, sorted and paged by the gateway", async () => {
    const { page, complaints } = await open("/keys");
    // The counts are cached for a few seconds.
    await expect
      .poll(async () => {
        await page.reload();
        return page.textContent("h1");
      }, PATIENT)
      .toMatch(/^\d+ of 10,\d{3} keys are over budget\.$/);
    expect(await page.locator("tbody tr").count()).toBe(25);
    const names = () => page.locator("tbody th a").allInnerTexts();
    const first = await names();
    await page.getByRole("link", { name: "Next page" }).click();
    await page.getByText("26 to 50 of 10,").waitFor();
    expect((await names()).filter((name) => first.includes(name))).toEqual([]);
    await page.getByRole("link", { name: "Previous page" }).click();
    await page.getByRole("link", { name: "Spent", exact: true }).click();
    await page.locator("th[aria-sort=descending]").waitFor();
    expect(await page.locator("tbody tr").first().innerText()).toContain(
      "$ 8.50",
    );
    await page.getByRole("link", { name: /^blocked/ }).click();
    await page.getByText("1 to 11 of 11", { exact: true }).waitFor();
    await page.goto(`${testbed.address}/keys`);
    await page.getByLabel("Search by name").fill("MANY-9999");
    await page.keyboard.press("Enter");
    await page.getByText("1 to 1 of 1", { exact: true }).waitFor();
    await page.goto(`${testbed.address}/keys?page=99999`);
    expect(await main(page)).toContain("Nothing here.");
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test("are a small page that fits every screen", async () => {
    await fixture.createKey({ key_alias: `zzz ${hostile}`, user_id: hostile });
    const list = "keys?sort=key_alias";
    await checkEveryScreen(browser, `${testbed.address}/${list}`, {
      name: "keys-many",
      heading: /over budget/,
    });
    const answer = await fetch(`${testbed.address}/keys`, {
      headers: asOperator,
    });
    expect((await answer.text()).length).toBeLessThan(150_000);
  });
});

test("a form that was opened before another change keeps that change", async () => {
  const hashed = hashKey(await fixture.createKey({ key_alias: "two-tabs" }));
  const first = await open(`/keys/${hashed}/edit`);
  const second = await open(`/keys/${hashed}/edit`);
  await first.page.fill("[name=max_budget]", "5");
  await first.page.click("text=Save changes");
  await first.page.getByRole("status").waitFor();
  await second.page.fill("[name=rpm_limit]", "many");
  await second.page.click("text=Save changes");
  await second.page.fill("[name=rpm_limit]", "7");
  await second.page.click("text=Save changes");
  await second.page.getByRole("status").waitFor();
  await second.page.click("text=Edit");
  expect(await second.page.inputValue("[name=rpm_limit]")).toBe("7");
  expect(await second.page.inputValue("[name=max_budget]")).toBe("5");
  await first.page.context().close();
  await second.page.context().close();
});

test("a form that is sent while the gateway is away is shown again as typed, and can be sent once it is back", async () => {
  await fixture.createKey({ key_alias: "away-old" });
  const relay = await startRelay(Number(new URL(fixture.url).port), () => ({
    nextRequest: ({ length }) =>
      length === 0 ? null : { length, point: null, answers: 0 },
    nextAnswer: ({ length }) => (length === 0 ? null : { length, ends: false }),
  }));
  const console = await startConsoleTestbed({
    services: [],
    env: {
      GATEWAY_URL: `http://127.0.0.1:${relay.port}`,
      PROXY_MASTER_KEY: MASTER_KEY,
    },
  });
  const { page } = await openPage(browser, DESK);
  const submitAway = async (button: string) => {
    relay.stall();
    const [answer] = await Promise.all([
      page.waitForResponse((each) => each.request().method() === "POST"),
      page.click(`text=${button}`),
    ]);
    expect(answer.status()).toBe(502);
    expect(await page.getByRole("alert").innerText()).toMatch(
      /^The gateway at .* does not answer \(no answer in time\)/,
    );
    relay.restore();
  };
  try {
    await page.goto(`${console.address}/keys/new`);
    await page.fill("[name=key_alias]", "away-new");
    await page.fill("[name=max_budget]", "7");
    await page.check("[value=some]");
    await page.check("[name=models][value=waiting]");
    await submitAway("Create key");
    expect(await page.inputValue("[name=max_budget]")).toBe("7");
    expect(await page.isChecked("[name=models][value=waiting]")).toBe(true);
    await page.click("text=Create key");
    await page.waitForSelector("#the-key");
    await page.goto(`${console.address}/keys?search=away-old`);
    await page.click("text=away-old");
    await page.click("text=Edit");
    await page.fill("[name=key_alias]", "away-renamed");
    await submitAway("Save changes");
    await page.click("text=Save changes");
    expect(await page.getByRole("status").innerText()).toContain(
      'Key "away-renamed" updated.',
    );
  } finally {
    await page.context().close();
    await console.stop();
    await relay.close();
  }
});

test("without a master key or a gateway, one sentence says what to do", async () => {
  const without = await startConsoleTestbed({
    services: [],
    env: { GATEWAY_URL: fixture.url },
  });
  const away = await startConsoleTestbed({
    services: [],
    env: { GATEWAY_URL: "http://127.0.0.1:1", PROXY_MASTER_KEY: MASTER_KEY },
  });
  try {
    const { page } = await openPage(browser, DESK);
    await page.goto(`${without.address}/teams`);
    expect(await page.textContent("h1")).toBe(
      "Keys, users and teams are unavailable.",
    );
    expect(await main(page)).toContain("set PROXY_MASTER_KEY_FILE");
    expect(await findViolations(page)).toEqual([]);
    await page.goto(`${away.address}/keys/new`);
    expect(await main(page)).toContain("does not answer (ECONNREFUSED)");
    expect(await page.locator("main code").innerText()).toBe(
      "npx hearth status",
    );
    expect(await findViolations(page)).toEqual([]);
    await page.context().close();
  } finally {
    await without.stop();
    await away.stop();
  }
});
