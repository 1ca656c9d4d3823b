import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../core/duration.ts";
import { hashKey } from "../../gateway/access/keys.ts";
import { startMockProvider, type MockProvider } from "../servers/provider.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import { DESK, openPage } from "./browser.ts";
import {
  mainText,
  PATIENT,
  startGatewayTestbed,
  type GatewayTestbed,
} from "./gateway-testbed.ts";

const hostile = `<img src=x onerror="document.title=1">'"& \u202eabc ${"long".repeat(40)}`;

let testbed: GatewayTestbed;
let broken: MockProvider;
let good: MockProvider;
let anna: string;
/** Ids of calls by what they show. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  broken = await startMockProvider({ alwaysStatus: 500 });
  good = await startMockProvider();
  testbed = await startGatewayTestbed(`
  - model_name: shaky
    provider_params: { model: openai/shaky-model, api_base: "${broken.url}", api_key: x }
  - model_name: sonnet
    provider_params: { model: openai/sonnet-model, api_base: "${good.url}", api_key: x, input_cost_per_token: 3e-6, output_cost_per_token: 1.5e-5, cache_read_input_token_cost: 3e-7, output_cost_per_reasoning_token: 2e-5 }
proxy_settings: { cache: true, cache_params: { type: memory } }
router_settings: { num_retries: 1, retry_after: 0, fallbacks: [{ shaky: [sonnet] }] }
`);
  const { fixture } = testbed;
  anna = await fixture.createKey({
    key_alias: "anna-laptop",
    user_id: "anna",
    store_prompts: true,
  });
  const usage = {
    prompt_tokens: 12_345,
    completion_tokens: 678,
    prompt_tokens_details: { cached_tokens: 10_000 },
    completion_tokens_details: { reasoning_tokens: 400 },
  };
  const ask = async (
    name: string,
    prompt: string,
    fields: Readonly<Record<string, unknown>>,
  ) => {
    let answer = await fixture.chat(anna, prompt, fields);
    // On a busy machine Postgres may not answer in time for a key's first call.
    while (answer.status === 503) {
      await sleep(200);
      answer = await fixture.chat(anna, prompt, fields);
    }
    expect(answer.status, name).toBe(name === "failed" ? 500 : 200);
    ids[name] = answer.headers.get("x-hearth-call-id") ?? "";
  };
  const mocked = `[mock]${JSON.stringify({ usage, text: `${hostile}\nsecond line`, chunks: 6, chunkDelayMs: 40 })}`;
  await ask("hostile", `${hostile} my key: sk-${"a1".repeat(20)} ${mocked}`, {
    model: "sonnet",
    stream: true,
    tags: ["kitchen", hostile.slice(0, 200)],
    user: hostile.slice(0, 200),
  });
  await ask("fallback", "hello", { model: "shaky" });
  await ask("first", "twice", { model: "sonnet" });
  await ask("cached", "twice", { model: "sonnet" });
  await ask("failed", "fail", { model: "shaky", fallbacks: [] });
  const { gateway } = fixture.running;
  await gateway.ledger.flush();
  await gateway.prompts.flush();
  await fillHours();
});
afterAll(async () => {
  await testbed?.stop();
  await broken?.close();
  await good?.close();
});

/** Two hundred calls of three keys, some failed, slow, expensive and tagged. */
async function fillHours(): Promise<void> {
  const { fixture } = testbed;
  await fixture.post("/team/new", { team_id: "home", team_alias: "Home" });
  const office = await fixture.createKey({
    key_alias: "office",
    team_id: "home",
  });
  const wild = await fixture.createKey({
    key_alias: hostile.slice(0, 200),
    user_id: hostile.slice(0, 200),
  });
  const owners = [
    { api_key: hashKey(anna), user_id: "anna" },
    { api_key: hashKey(office), team_id: "home" },
    { api_key: hashKey(wild), user_id: hostile.slice(0, 200) },
  ];
  const now = Date.now();
  await fixture.spend(
    ...Array.from({ length: 200 }, (_, at) => {
      const started = now - (at + 2) * 7 * MINUTE_MS;
      return {
        ...owners[at % 3],
        request_id: `filled-${at}`,
        started_at: new Date(started).toISOString(),
        ended_at: new Date(
          started + (at % 40 === 7 ? 45_000 : 400 + (at % 9) * 210),
        ).toISOString(),
        model_group: ["sonnet", "mock", hostile][at % 3] ?? null,
        provider: at % 2 === 0 ? "openai" : "anthropic",
        spend: at % 40 === 7 ? 1.25 : (at % 11) * 0.0017,
        prompt_tokens: 900 + at * 13,
        completion_tokens: 100 + at,
        tags: at % 5 === 0 ? ["kitchen"] : null,
        ...(at % 25 === 3
          ? {
              status: "failure" as const,
              spend: 0,
              metadata: {
                error_information: {
                  error_code: "529",
                  error_message: `Overloaded: ${hostile}`,
                },
              },
            }
          : {}),
      };
    }),
  );
}

describe("pages of calls", () => {
  test("calls fit every screen and are accessible", async () => {
    const address = `${testbed.address}/spend/calls?from=2026-01-01`;
    await checkEveryScreen(testbed.browser, address, {
      name: "calls",
      heading: "205 calls.",
    });
  });

  test("the mark of a result on several lines is beside the first", async () => {
    const { page } = await testbed.open("/spend/calls?from=2026-01-01");
    await page.setViewportSize({ width: 1024, height: 900 });
    const results = await page.locator("td .state").evaluateAll((all) =>
      all.map((state) => ({
        height: state.getBoundingClientRect().height,
        belowTop:
          (state.firstElementChild?.getBoundingClientRect().bottom ?? 0) -
          state.getBoundingClientRect().top,
      })),
    );
    const line = Math.min(...results.map(({ height }) => height));
    expect(results.some(({ height }) => height > line)).toBe(true);
    for (const { belowTop } of results) {
      expect(belowTop).toBeLessThan(line);
    }
    await page.context().close();
  });

  test.each([
    ["call-hostile", "hostile", "", /^sonnet answered in /],
    ["call-failed", "failed", "", /^shaky failed after /],
    ["call-prompt", "hostile", "/prompt", "Prompt and answer"],
  ])(
    "%s fits every screen and is accessible",
    async (name, call, below, heading) => {
      await checkEveryScreen(
        testbed.browser,
        `${testbed.address}/spend/calls/${ids[call]}${below}`,
        { name, heading },
      );
    },
  );
});

test("the result of a call breaks only between words beside the longest names", async () => {
  const { page } = await testbed.open("/spend/calls");
  const states = page.locator("[aria-label='Calls'] .state");
  const heights = await states.evaluateAll((all) =>
    all.map((each) => each.getBoundingClientRect().height),
  );
  expect(heights.length).toBeGreaterThan(5);
  // Two lines at most.
  expect(Math.max(...heights)).toBeLessThan(60);
  await page.context().close();
});

test("filters are combined in the form, kept in the address, removed one by one, and named when wrong", async () => {
  const { page, complaints } = await testbed.open("/spend/calls");
  await page.getByText("Filter", { exact: true }).press("Enter");
  await page.locator("#f-key").fill("office");
  await page.getByLabel("Cost at least").fill("0.01");
  await page.getByLabel("Provider").fill("openai");
  await page.keyboard.press("Enter");
  await page.getByRole("list", { name: "Filters" }).waitFor();
  expect(new URL(page.url()).searchParams.get("cost")).toBe("0.01");
  const rows = page.locator("tbody tr");
  const few = await rows.count();
  expect(few).toBeGreaterThan(0);
  for (const text of await rows.allInnerTexts()) {
    expect(text).toContain("office");
  }
  await page
    .getByRole("link", { name: "Remove the filter: provider openai" })
    .press("Enter");
  await expect.poll(() => rows.count()).toBeGreaterThan(few);
  await page.goto(`${testbed.address}/spend/calls?key=ofice`);
  expect(await page.locator("#f-key-mistake").innerText()).toBe(
    'Key "ofice" is unknown (did you mean "office"?).',
  );
  expect(await page.locator("#f-key").inputValue()).toBe("ofice");
  await page.setViewportSize({ width: 360, height: 900 });
  await takePicture(page, "calls-mistake-phone");
  await page.setViewportSize({ width: 1280, height: 900 });
  await takePicture(page, "calls-mistake-desk");
  await page.goto(`${testbed.address}/spend/calls?key=sk-verysecret`);
  expect(await mainText(page)).toContain("not a secret");
  expect(await page.content()).not.toContain("verysecret");
  // A browser reports the status of a rejected filter.
  expect(complaints.filter((each) => !each.includes("400"))).toEqual([]);
  await page.context().close();
});

test("a list continues in both directions, and a new call appears by itself", async () => {
  const { page } = await testbed.open("/spend/calls?status=success");
  const rows = page.locator("tbody tr");
  const newest = await rows.allInnerTexts();
  await page.getByRole("link", { name: "Older calls" }).click();
  const older = await rows.allInnerTexts();
  await page.getByRole("link", { name: "Older calls" }).click();
  await page.getByRole("link", { name: "Newer calls" }).click();
  expect(await rows.allInnerTexts()).toEqual(older);
  await page.getByRole("link", { name: "Newer calls" }).click();
  expect(await rows.allInnerTexts()).toEqual(newest);
  expect(await page.getByRole("link", { name: "Newer calls" }).count()).toBe(0);
  await testbed.fixture.spend({ request_id: "new-one", model_group: "fresh" });
  await expect
    .poll(async () => {
      // Returning to the tab refreshes it, too.
      await page.evaluate(
        'document.dispatchEvent(new Event("visibilitychange"))',
      );
      return rows.first().innerText();
    }, PATIENT)
    .toContain("fresh");
  await page.context().close();
});

test("a call's page adds its cost up to the ledger's, and leads to its prompt, whose view is audited", async () => {
  const { page, complaints } = await testbed.open(
    "/spend/calls?key=anna-laptop&tag=kitchen&model=sonnet",
  );
  await page.locator(`tbody a[href$="${ids["hostile"]}"]`).press("Enter");
  await page.getByRole("heading", { name: "Why this cost" }).waitFor();
  const cost = page.getByRole("region", { name: "Why this cost" });
  const amounts = await cost.locator("tbody td:last-child").allInnerTexts();
  expect(amounts).toEqual(["$ 0.007035", "$ 0.003", "$ 0.00417", "$ 0.008"]);
  expect(await cost.locator("tfoot b").innerText()).toBe("$ 0.022205");
  const views = async () =>
    (await testbed.fixture.get(
      `/audit?object_type=prompt&object_id=${ids["hostile"]}`,
    )) as unknown as readonly unknown[];
  const before = (await views()).length;
  await page
    .getByRole("link", { name: "Show prompt and answer" })
    .press("Enter");
  await page.getByRole("heading", { name: "Answer", exact: true }).waitFor();
  const text = await mainText(page);
  expect(text).toContain('<img src=x onerror="document.title=1">');
  expect(text).toContain("my key: [REDACTED]");
  expect(text).not.toMatch(/[\u202a-\u202e]|a1a1a1/);
  expect((await views()).slice(0, 1)).toMatchObject([
    { action: "viewed", actor: "operator" },
  ]);
  expect(await views()).toHaveLength(before + 1);
  await page.getByRole("link", { name: "Back to the call" }).press("Enter");
  await page.getByText("waiting for providers").first().waitFor();
  expect(await views()).toHaveLength(before + 1);
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a fallback and an answer from the cache are named, and so is an unknown call", async () => {
  const { page } = await openPage(testbed.browser, DESK);
  await page.goto(`${testbed.address}/spend/calls/${ids["fallback"]}`);
  expect(await mainText(page)).toMatch(/Retry[^]*500[^]*Fallback[^]*sonnet:/);
  await page.goto(`${testbed.address}/spend/calls/${ids["cached"]}`);
  expect(await page.textContent("h1")).toMatch(/^The cache answered for/);
  const answer = await page.goto(`${testbed.address}/spend/calls/no%2Fsuch`);
  expect(answer?.status()).toBe(404);
  expect(await mainText(page)).toContain('No call "no/such" is in the ledger');
  await page.context().close();
});
