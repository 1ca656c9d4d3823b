import { createServer, type Server } from "node:http";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { query } from "../../gateway/database/pool.ts";
import { startMockProvider, type MockProvider } from "../servers/provider.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import {
  confirm,
  mainText as main,
  PATIENT,
  startGatewayTestbed,
  type GatewayTestbed,
} from "./gateway-testbed.ts";
import { listen, portOf } from "../servers/ports.ts";

const hostile = `<img src=x onerror="document.title=1">'"& \u202eabc ${"long".repeat(40)}`;
const SECRET = "sk-typed-secret-0123456789";

let testbed: GatewayTestbed;
let open: GatewayTestbed["open"];
let broken: MockProvider;
let waited: MockProvider;
let runner: Server;

beforeAll(async () => {
  broken = await startMockProvider({ alwaysStatus: 500 });
  waited = await startMockProvider();
  runner = createServer((request, response) => {
    const isList = request.url === "/v1/models";
    const data = [{ id: "qwen3" }, { id: hostile }];
    response.writeHead(isList ? 200 : 404).end(JSON.stringify({ data }));
  });
  await listen(runner);
  testbed = await startGatewayTestbed(`
  - model_name: shaky
    provider_params: { model: openai/shaky-model, api_base: "${broken.url}", api_key: x }
    model_info: { id: shaky-1 }
  - model_name: waiting
    provider_params: { model: openai/gpt-waiting, api_base: "${waited.url}", api_key: os.environ/HEARTH_TEST_UNSET_KEY }
  - model_name: home
    provider_params: { model: openai/llama, api_base: os.environ/HEARTH_TEST_RUNNER_URL }
  - model_name: ${JSON.stringify(hostile)}
    provider_params: { model: ${JSON.stringify(`openai/${hostile}`)}, api_base: "http://127.0.0.1:9", api_key: x }
    model_info: { id: ${JSON.stringify(`id & ${hostile.slice(0, 60)}`)} }
${Array.from({ length: 30 }, (_, at) => `  - { model_name: many-${at}, provider_params: { model: openai/many, api_base: "http://127.0.0.1:9", api_key: x } }`).join("\n")}
`);
  ({ open } = testbed);
  await fillDay();
});
afterAll(async () => {
  await testbed?.stop();
  await broken?.close();
  await waited?.close();
  runner?.close();
});

/** Calls of the last day: mock gets slower and fails once in an hour. */
async function fillDay(): Promise<void> {
  const { fixture } = testbed;
  const [model] =
    fixture.running.gateway.catalog.find("mock")?.deployments ?? [];
  const model_id = model?.id ?? "";
  const now = Date.now();
  const rows = Array.from({ length: 120 }, (_, at) => {
    // Of 20 hours: an hour may end before the pages are read.
    const ended = now - Math.floor(at / 6) * HOUR_MS - 1_000;
    const ms = 400 + ((at * 37) % 400) + (at % 5 === 4 ? 3_000 : 0);
    return {
      started_at: new Date(ended - ms).toISOString(),
      ended_at: new Date(ended).toISOString(),
      model_group: "mock",
      model_id,
      completion_tokens: 60,
      waited_ms: ms,
      ...(at % 40 === 0 ? { status: "failure" as const } : {}),
    };
  });
  await fixture.spend(...rows);
  const key = await fixture.createKey({});
  await fixture.chat(key, "hello", { model: "shaky" });
  await fixture.running.gateway.ledger.flush();
}

/** The state of an alias in the list. */
async function stateOf(page: Page, alias: string): Promise<string> {
  await page.goto(`${testbed.address}/models?search=${alias}`);
  const row = page.locator("tbody tr", { hasText: alias }).first();
  return (await row.locator(".state").innerText()).trim();
}

test("the list and the page of a model fit every screen, with hostile names", async () => {
  const { browser, address } = testbed;
  await checkEveryScreen(
    browser,
    `${address}/models?sort=requests&order=desc`,
    {
      name: "models",
      heading: "1 failing of 35 deployments.",
    },
  );
  await checkEveryScreen(browser, `${address}/models/model?id=mock`, {
    name: "model",
    heading: "mock is serving.",
  });
  const { page } = await open("/models?search=%3Cimg");
  await page.getByRole("link", { name: "<img" }).click();
  expect(await page.textContent("h1")).toContain("is ready.");
  await page.context().close();
  await checkEveryScreen(
    browser,
    `${address}/models/model?id=${encodeURIComponent(hostile)}&span=month`,
    { name: "model-hostile", heading: /is ready\.$/ },
  );
  await checkEveryScreen(browser, `${address}/models/new`, {
    name: "model-new",
    heading: "Add a model",
  });
});

test("charts of a day, a week and a month, with links between a model and its calls", async () => {
  const { page, complaints } = await open("/models/mock");
  expect(page.url()).toContain("/models/model?id=mock");
  const text = await main(page);
  expect(text).toMatch(/Calls\s+120\s+last 24 hours/);
  expect(text).toMatch(/Failed\s+3\s+2\.5 % of calls/);
  expect(await page.locator("figure svg[role=img]").count()).toBe(3);
  await takePicture(page, "model-usual");
  await page.getByRole("link", { name: "30 days" }).click();
  expect(await main(page)).toMatch(/last 30 days/);
  await page.getByRole("link", { name: "Calls of this model" }).click();
  expect(page.url()).toContain("/spend/calls?model=mock");
  await page.locator("tbody th a").first().click();
  await page.getByRole("link", { name: "model mock" }).click();
  expect(await page.textContent("h1")).toBe("mock is serving.");
  expect(complaints).toEqual([]);
  await page.context().close();
});

test("a test is one click in the list; a failed one shows the provider's error", async () => {
  const { page } = await open("/models?search=mock");
  await page
    .getByRole("button", { name: "Test mock, openai/mock-model" })
    .click();
  expect(await page.textContent("[role=status]")).toMatch(
    /^openai\/mock-model answered in [\d.]+ m?s: 10 tokens in, 4 out, \$ [\d.]+\.$/,
  );
  await page.goto(`${testbed.address}/models?search=shaky`);
  await page.getByRole("button", { name: "Test shaky" }).click();
  expect(await page.textContent("[role=status]")).toMatch(
    /^Test of openai\/shaky-model failed: ./,
  );
  expect(await page.textContent("h1")).toBe("shaky is failing.");
  await page.context().close();
});

test("a model is switched off and on with the keyboard, without scripts, and the change is audited", async () => {
  const { page } = await open("/models/model?id=mock", { javaScript: false });
  await page.locator("summary", { hasText: "Switch off…" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Switch off" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=status]");
  expect(await page.textContent("h1")).toBe("mock is off.");
  const { fixture } = testbed;
  const key = await fixture.createKey({});
  expect((await fixture.chat(key, "hello")).status).toBe(403);
  expect(await stateOf(page, "mock")).toBe("off");
  await page.goto(`${testbed.address}/models/model?id=mock`);
  await confirm(page, "Switch on");
  expect(await page.textContent("[role=status]")).toContain("switched on");
  expect((await fixture.chat(key, "hello")).status).toBe(200);
  const audited = await query(
    fixture.pool,
    "SELECT actor, action FROM audit_log WHERE object_type = 'model' AND action LIKE '%blocked' ORDER BY id",
  );
  expect(audited).toEqual(
    ["blocked", "unblocked"].map((action) => ({
      actor: expect.stringContaining("operator"),
      action,
    })),
  );
  await page.context().close();
});

test("a key and an address are stored encrypted, take effect at once, and never come back", async () => {
  const { page, complaints } = await open("/models");
  const seen: string[] = [];
  page.on("response", (response) => {
    response.text().then(
      (text) => seen.push(text, response.url()),
      () => undefined,
    );
  });
  const variable = (name: string) => page.locator(".row", { hasText: name });
  const key = variable("HEARTH_TEST_UNSET_KEY");
  await key.locator("summary").click();
  await key.getByLabel("Value of HEARTH_TEST_UNSET_KEY").fill(SECRET);
  await key.getByRole("button", { name: "Store key" }).click();
  expect(await page.textContent("[role=status]")).toBe(
    "HEARTH_TEST_UNSET_KEY stored, encrypted. Ready: waiting.",
  );
  const home = variable("HEARTH_TEST_RUNNER_URL");
  await home.locator("summary").click();
  const address = home.getByLabel("Address for HEARTH_TEST_RUNNER_URL");
  await address.fill("http://me:hidden-password@127.0.0.1:1");
  await home.getByRole("button", { name: "Store address" }).click();
  expect(await main(page)).toContain("must not contain a user or a password");
  await page.goto(`${testbed.address}/models`);
  await home.locator("summary").click();
  await address.fill(testbed.fixture.providerUrl);
  await home.getByRole("button", { name: "Store address" }).click();
  expect(await page.textContent("[role=status]")).toContain("Ready: home.");
  expect(await main(page)).toMatch(/Stored keys and addresses/i);
  const virtual = await testbed.fixture.createKey({});
  for (const model of ["waiting", "home"]) {
    await expect
      .poll(
        async () =>
          (await testbed.fixture.chat(virtual, "hello", { model })).status,
        PATIENT,
      )
      .toBe(200);
  }
  expect(waited.requests.at(-1)?.headers["authorization"]).toBe(
    `Bearer ${SECRET}`,
  );
  expect(seen.length).toBeGreaterThan(4);
  for (const secret of [SECRET, "hidden-password"]) {
    expect(seen.filter((text) => text.includes(secret))).toEqual([]);
  }
  expect(complaints.filter((each) => !each.includes("400"))).toEqual([]);
  await page.context().close();
});

test("the models of a runner are discovered and added, one by one", async () => {
  const port = portOf(runner);
  const { page } = await open("/models/new");
  await page.getByLabel("Address of a runner").fill("nonsense");
  await page.getByRole("button", { name: "Discover models" }).click();
  expect(await page.textContent(".mistake")).toContain(
    "Address must be one such as",
  );
  await page.getByLabel("Address of a runner").fill(`http://127.0.0.1:${port}`);
  await page.getByRole("button", { name: "Discover models" }).click();
  expect(await page.textContent("h1")).toBe("2 models of 1 runner found.");
  expect(await page.locator("img").count()).toBe(0);
  await takePicture(page, "models-found");
  await page.getByRole("button", { name: "Add qwen3 of" }).click();
  expect(await page.textContent("[role=status]")).toContain(
    'openai/qwen3 added as "qwen3".',
  );
  expect(await page.textContent("h1")).toBe("qwen3 is ready.");
  await page.goto(`${testbed.address}/models/new`);
  await page.getByLabel("Address of a runner").fill(`http://localhost:${port}`);
  await page.getByRole("button", { name: "Discover models" }).click();
  expect(await main(page)).toContain("already configured");
  await page.goto(`${testbed.address}/models/model?id=qwen3`);
  await confirm(page, "Delete", "qwen3");
  expect(await page.textContent("[role=status]")).toContain("deleted");
  await page.context().close();
});

test("an invalid address of a runner is shown again with its mistake", async () => {
  const { page } = await open("/models/new");
  await page.fill("[name=address]", "my-runner:11434");
  await page.click("text=Discover models");
  expect(await page.inputValue("[name=address]")).toBe("my-runner:11434");
  expect(await page.textContent("#f-address-mistake")).toContain(
    "Address must be one such as",
  );
  await page.context().close();
});

test("a model of any provider is added by a form, whose mistakes and key stay apart", async () => {
  const { page } = await open("/models/new");
  await page.getByLabel("Alias").fill("added");
  await page.getByLabel("Model", { exact: true }).fill("nosuchprovider/x");
  await page.getByLabel("API key").fill(SECRET);
  await page.getByRole("button", { name: "Add model" }).click();
  expect(await page.locator("[aria-invalid=true]").count()).toBe(1);
  expect(await page.getByLabel("Alias").inputValue()).toBe("added");
  expect(await page.content()).not.toContain(SECRET);
  await page.getByLabel("Model", { exact: true }).fill("openai/added-model");
  await page.getByLabel("Address", { exact: true }).fill(waited.url);
  await page.getByLabel("API key").fill(SECRET);
  await page.getByRole("button", { name: "Add model" }).click();
  expect(await page.textContent("h1")).toBe("added is ready.");
  await page.getByRole("button", { name: "Test added" }).click();
  expect(await page.textContent("[role=status]")).toContain("answered in");
  // The ledger follows the call after a moment.
  await expect
    .poll(async () => {
      await page.reload();
      return page.textContent("h1");
    }, PATIENT)
    .toBe("added is serving.");
  await page.context().close();
});

test("an alias that does not exist is a page that says so", async () => {
  const { page } = await open("/models/model?id=nosuch");
  expect(await page.textContent("h1")).toBe("Not found.");
  expect(await main(page)).toContain(
    'No model has the alias "nosuch", and no call of the last 30 days named it.',
  );
  await page.context().close();
});
