import { afterAll, beforeAll, expect, test } from "vitest";
import { startMockProvider, type MockProvider } from "../servers/provider.ts";
import { checkEveryScreen, fitEveryScreen } from "./every-screen.ts";
import { DESK, openPage } from "./browser.ts";
import {
  mainText,
  PATIENT,
  startGatewayTestbed,
  type GatewayTestbed,
} from "./gateway-testbed.ts";

let testbed: GatewayTestbed;
let provider: MockProvider;

beforeAll(async () => {
  provider = await startMockProvider();
  testbed = await startGatewayTestbed(`
  - model_name: sonnet
    provider_params: { model: openai/sonnet-model, api_base: "${provider.url}", api_key: x, input_cost_per_token: 3e-6, output_cost_per_token: 1.5e-5 }
`);
});
afterAll(async () => {
  await testbed?.stop();
  await provider?.close();
});

test("the empty form fits every screen and is accessible", async () => {
  await checkEveryScreen(testbed.browser, `${testbed.address}/playground`, {
    name: "playground",
    heading: "Playground",
  });
});

test("two models answer side by side, by keyboard; mistakes and the gateway's sentences are named", async () => {
  const { page, complaints } = await testbed.open("/playground?model=sonnet");
  const hostile = `<img src=x onerror="document.title=1"> ${"long".repeat(60)}`;
  await page.getByLabel("Model 2").fill("mokc");
  await page.getByLabel("Prompt", { exact: true }).fill(hostile);
  await page.getByLabel("Tools").fill("[\n  {x}\n]");
  await page.getByLabel("Tools").press("Tab");
  await page.getByRole("button", { name: "Ask models" }).press("Enter");
  await expect
    .poll(() => page.locator("#p-tools-mistake").innerText(), PATIENT)
    .toContain("line 2, column 4");
  expect(await page.locator(":focus").getAttribute("id")).toBe("p-tools");
  expect(provider.requests).toHaveLength(0);

  await page.getByLabel("Tools").fill("");
  await page.getByLabel("Images").setInputFiles({
    name: "large.png",
    mimeType: "image/png",
    buffer: Buffer.alloc(4_000_000),
  });
  await page.getByRole("button", { name: "Ask models" }).press("Enter");
  expect(await page.locator("#p-images-mistake").innerText()).toContain(
    "at most 3 MB",
  );
  await page.getByLabel("Images").setInputFiles({
    name: "cat.png",
    mimeType: "image/png",
    buffer: Buffer.from("cat"),
  });
  await page.getByRole("button", { name: "Ask models" }).press("Enter");
  const cards = page.locator("article.answer");
  await expect
    .poll(() => cards.allInnerTexts(), PATIENT)
    .toEqual([
      expect.stringMatching(
        /sonnet[^]*answered[^]*word0 word1[^]*\$ 0\.00009 · 10 tokens in, 4 out · first token after .* in total Show call/,
      ),
      expect.stringMatching(/mokc[^]*rejected[^]*mokc/),
    ]);
  expect(await page.locator("#p-tools-mistake").count()).toBe(0);
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain(
    "data:image/png;base64,Y2F0",
  );
  await page.getByRole("button", { name: "Show code" }).press("Enter");
  await page.getByRole("heading", { name: "Python (anthropic)" }).waitFor();
  expect(await page.locator("#code-curl").innerText()).toContain("cat.png");
  await fitEveryScreen(page, "playground-answers");
  expect(await page.locator("img").count()).toBe(0);
  // A browser reports the status of a rejected form.
  expect(complaints.filter((each) => !each.includes("400"))).toEqual([]);
  await page.context().close();
});

test("an answer appears while it arrives, and Stop ends the call, whose cost is shown", async () => {
  const { page } = await testbed.open("/playground?model=sonnet");
  const slow = `[mock]${JSON.stringify({ chunks: 5_000, chunkDelayMs: 50 })}`;
  await page.getByLabel("Prompt", { exact: true }).fill(slow);
  await page.getByRole("button", { name: "Ask models" }).click();
  const card = page.locator("article.answer");
  await expect.poll(() => card.innerText(), PATIENT).toContain("word1");
  const request = provider.requests.at(-1);
  expect(request?.aborted).toBe(false);
  await page.getByRole("button", { name: "Stop" }).click();
  await expect.poll(() => request?.aborted, PATIENT).toBe(true);
  await expect
    .poll(() => card.innerText(), PATIENT)
    .toMatch(/stopped[^]*\$ 0\.[^]*tokens in/);
  expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
  await page.context().close();
});

test("when the session has ended, the card says so, and the input stays", async () => {
  const { page } = await testbed.open("/playground?model=sonnet");
  await page.getByLabel("Prompt", { exact: true }).fill("hello");
  await page.context().clearCookies();
  const denied = page.waitForResponse("**/playground/session");
  await page.getByRole("button", { name: "Ask models" }).click();
  expect((await denied).headers()["www-authenticate"]).toBeUndefined();
  await expect
    .poll(() => page.locator("article.answer").innerText(), PATIENT)
    .toContain("Your session has ended: sign in in another tab");
  expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe(
    "hello",
  );
  await page.context().close();
});

test("without script the form is answered by a page, and a typed key is not shown again", async () => {
  const key = await testbed.fixture.createKey({ key_alias: "typed" });
  const { page } = await openPage(testbed.browser, DESK, {
    javaScript: false,
  });
  await page.goto(`${testbed.address}/playground?model=sonnet`);
  await page.getByLabel("Prompt", { exact: true }).fill("hello");
  await page.locator("#p-key").fill(key);
  await page.getByRole("button", { name: "Ask models" }).click();
  await page.getByRole("heading", { name: "Answers" }).waitFor();
  expect(await mainText(page)).toContain("word0 word1 word2 word3");
  expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe(
    "hello",
  );
  expect(await page.content()).not.toContain(key);
  expect(page.url()).toBe(`${testbed.address}/playground`);
  await page.context().close();
});
