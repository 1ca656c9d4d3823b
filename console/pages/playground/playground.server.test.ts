import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configSchema } from "../../../supervisor/config/schema.ts";
import {
  openHistory,
  type History,
} from "../../../supervisor/history/history.ts";
import { createHome } from "../../../supervisor/home/home.ts";
import { Supervision } from "../../../supervisor/supervision.ts";
import type { Role } from "../../../supervisor/sign-in/roles.ts";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import { MASTER_KEY } from "../../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../../test/servers/provider.ts";
import {
  asOperator,
  testCredentials,
} from "../../../test/supervisor/operator.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../../test/wait-for.ts";
import { buildConsole } from "../../console.ts";
import { openNounContext } from "../nouns/noun-context.ts";
import { registerPlaygroundPage } from "./playground-page.ts";

let gateway: AdminFixture;
let provider: MockProvider;
let place: ReturnType<typeof temporaryHome>;
let history: History;
let console: FastifyInstance;
let address: string;

beforeAll(async () => {
  provider = await startMockProvider();
  gateway = await startAdminFixture(`
  - model_name: priced
    provider_params: { model: openai/priced, api_base: "${provider.url}", api_key: x, input_cost_per_token: 0.001, output_cost_per_token: 0.002 }
  - model_name: gone
    provider_params: { model: openai/gone, api_base: "http://127.0.0.1:1/v1", api_key: x }
router_settings: { num_retries: 0 }
`);
  place = temporaryHome();
  createHome(place.home);
  history = openHistory(place.home.history);
  const supervision = new Supervision({
    home: place.home,
    env: {
      GATEWAY_URL: gateway.url,
      GATEWAY_PUBLIC_URL: "https://ai.example.org",
      PROXY_MASTER_KEY: MASTER_KEY,
      HEARTH_OPERATOR_PASSWORD: testCredentials.operatorPassword,
    },
    config: { leftOut: [], config: configSchema.parse({}) },
    history,
    onCheck: () => {},
    onNotice: () => {},
  });
  console = buildConsole(supervision, undefined);
  address = await console.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await console?.close();
  history?.close();
  place?.remove();
  await gateway?.stop();
  await provider?.close();
});

type Values = Readonly<Record<string, string | File | readonly string[]>>;

function post(
  path: string,
  values: Values,
  {
    headers,
    signal,
  }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  const body = new FormData();
  for (const [name, value] of Object.entries(values)) {
    for (const each of [value].flat()) {
      body.append(name, each);
    }
  }
  return fetch(address + path, {
    method: "POST",
    body,
    headers: { ...asOperator, ...headers },
    ...(signal === undefined ? {} : { signal }),
  });
}

interface Event {
  readonly kind: string;
  readonly text?: string;
  readonly call?: string;
  readonly answer?: {
    readonly text: string;
    readonly word: string;
    readonly error: string | null;
    readonly usage: readonly string[];
  };
}

async function eventsOf(
  response: Promise<Response>,
): Promise<readonly Event[]> {
  const answer = await response;
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return text
    .split("\n\n")
    .filter((each) => each !== "")
    .map((each) => JSON.parse(each.slice("data: ".length)) as Event);
}

const lastRequest = () => provider.requests.at(-1);

test("a call with the session streams, and counts for the master key's user and the signed-in user", async () => {
  const image = new File(["cat"], "cat.png", { type: "image/png" });
  const events = await eventsOf(
    post("/playground/session", {
      model: "priced",
      system: "Be brief.",
      prompt: "hello",
      images: image,
      tools: '[{"type":"function","function":{"name":"clock"}}]',
    }),
  );
  expect(events.map(({ kind }) => kind)).toEqual([
    "started",
    ...Array.from({ length: 4 }, () => "text"),
    "ended",
  ]);
  expect(events.at(-1)?.answer).toMatchObject({
    text: "word0 word1 word2 word3 ",
    word: "answered",
    usage: ["10 tokens in, 4 out"],
  });
  expect(lastRequest()?.body).toMatchObject({
    messages: [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "hello" },
          { image_url: { url: "data:image/png;base64,Y2F0" } },
        ],
      },
    ],
    tools: [{ function: { name: "clock" } }],
  });
  expect(JSON.stringify(lastRequest()?.body)).not.toMatch(/operator|metadata/);
  const [started] = events;
  const id = started?.call?.split("/").pop() ?? "";
  const billed = await fetch(`${address}/playground/calls/${id}`, {
    headers: asOperator,
  });
  expect(await billed.json()).toEqual({
    usage: ["$ 0.02", "10 tokens in, 4 out"],
  });
  expect(await gateway.get(`/spend/calls/${id}`)).toMatchObject({
    user: "default_user_id",
    end_user: "operator",
    api_key: null,
  });
});

test("a call with a key is its own, and an exceeded budget is the gateway's sentence", async () => {
  const key = await gateway.createKey({ key_alias: "small", max_budget: 0.01 });
  const ask = () =>
    eventsOf(
      post("/playground/answer", { model: "priced", prompt: "hi", key }),
    );
  const [started] = await ask();
  const id = started?.call?.split("/").pop() ?? "";
  await waitFor("the call in the ledger", async () => {
    const answer = await gateway.request("GET", `/spend/calls/${id}`);
    return answer.status === 200;
  });
  expect(await gateway.get(`/spend/calls/${id}`)).toMatchObject({
    metadata: { user_api_key_alias: "small" },
    end_user: null,
  });
  const [ended] = await ask();
  expect(ended?.answer).toMatchObject({ word: "rejected" });
  expect(ended?.answer?.error).toContain("Budget has been exceeded!");
});

test.each([
  ["an unknown model", { model: "mokc" }, /mokc/],
  ["an unknown key", { model: "mock", key: "sk-unknown" }, /is unknown/],
  ["a provider that is down", { model: "gone" }, /gone|provider|connect/i],
])(
  "the gateway's sentence is next to the answer: %s",
  async (_what, values, sentence) => {
    const path = "key" in values ? "/playground/answer" : "/playground/session";
    const events = await eventsOf(post(path, { prompt: "hi", ...values }));
    const { error } = events.at(-1)?.answer ?? {};
    expect(error).toMatch(sentence);
    expect(error).not.toContain("sk-unknown");
  },
);

test("when the browser leaves, the call to the provider ends", async () => {
  const leave = new AbortController();
  const prompt = `slow [mock]${JSON.stringify({ chunks: 10_000, chunkDelayMs: 20 })}`;
  const answer = await post(
    "/playground/session",
    { model: "priced", prompt },
    { signal: leave.signal },
  );
  const reader = answer.body?.getReader();
  await reader?.read();
  const request = lastRequest();
  expect(request?.aborted).toBe(false);
  leave.abort();
  await waitFor(
    "the provider's request to end",
    () => request?.aborted === true,
  );
});

test("a browser without script gets a page with the answers, without the key", async () => {
  const key = await gateway.createKey({ key_alias: "page" });
  const answer = await post(
    "/playground",
    { model: ["priced", "gone"], prompt: "<b>hello</b>", key },
    { headers: { accept: "text/html" } },
  );
  const page = await answer.text();
  expect(answer.status).toBe(200);
  expect(page).toContain("1 of 2 failed.");
  expect(page).toContain("word0 word1 word2 word3");
  expect(page).toContain("$ 0.02 · 10 tokens in, 4 out · first token after");
  expect(page).toContain("&lt;b&gt;hello&lt;/b&gt;");
  expect(page).not.toContain(key);
  expect(answer.headers.get("content-security-policy")).toContain("sha256-");
});

test("code is shown without a call, with the public address and no key", async () => {
  const before = provider.requests.length;
  const key = "sk-not-to-be-shown";
  const answer = await post(
    "/playground",
    { model: "priced", prompt: "hi", key, show: "code" },
    { headers: { accept: "text/html" } },
  );
  const page = await answer.text();
  expect(page).toContain("https://ai.example.org/v1/chat/completions");
  expect(page).not.toContain(key);
  expect(provider.requests.length).toBe(before);
});

test("what cannot be sent is named by its field, and is not sent", async () => {
  const before = provider.requests.length;
  const values = { model: "priced", prompt: "hi", tools: "[{]" };
  const answer = await post("/playground/session", values);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toEqual({
    error: { message: expect.any(String), code: "400" },
    mistakes: {
      tools:
        "Tools: invalid JSON at line 1, column 3: expected property name or '}'.",
    },
  });
  const noKey = await post("/playground/answer", { ...values, tools: "" });
  expect(await noKey.json()).toMatchObject({
    mistakes: { key: expect.stringContaining("Key is required") },
  });
  const page = await post("/playground", values, {
    headers: { accept: "text/html" },
  });
  expect(page.status).toBe(400);
  expect(await page.text()).toContain("invalid JSON at line 1, column 3");
  expect(provider.requests.length).toBe(before);
});

test("a form of another page, a damaged one and one that is too large are rejected", async () => {
  const values = { model: "priced", prompt: "hi" };
  const foreign = await post("/playground/session", values, {
    headers: { origin: "https://elsewhere.example" },
  });
  expect(foreign.status).toBe(403);
  const damaged = await fetch(`${address}/playground/session`, {
    method: "POST",
    headers: {
      ...asOperator,
      "content-type": "multipart/form-data; boundary=x",
    },
    body: "no form",
  });
  expect(damaged.status).toBe(400);
  expect(await damaged.text()).toContain("The form is damaged");
  const large = await post("/playground/session", {
    ...values,
    images: new File([Buffer.alloc(4 * 1024 * 1024)], "a.png", {
      type: "image/png",
    }),
  });
  expect(large.status).toBe(413);
  expect(await large.text()).toContain("larger than 3 MB");
});

test("large forms are rejected while others fill the memory, small ones are not", async () => {
  const slow = `slow [mock]${JSON.stringify({ chunks: 10_000, chunkDelayMs: 20 })}`;
  // As large as an image, which the provider of the tests would answer at once.
  const large = "x".repeat(2_900_000);
  const leave = new AbortController();
  const send = (values: Values) =>
    post(
      "/playground/session",
      { model: "priced", prompt: slow, ...values },
      { signal: leave.signal },
    );
  const running = [await send({ more: large }), await send({ more: large })];
  expect(running.map(({ status }) => status)).toEqual([200, 200]);
  const third = await send({ more: large });
  expect(third.status).toBe(429);
  expect(await third.text()).toContain("wait until their answers end");
  expect((await send({})).status).toBe(200);
  leave.abort();
  await waitFor("room", async () => {
    const answer = await post("/playground/session", {
      model: "priced",
      prompt: "hi",
      more: large,
    });
    await answer.text();
    return answer.status === 200;
  });
});

/** The pages alone, for a user with a role, with the gateway at `url`. */
async function pagesFor(role: Role, url: string): Promise<FastifyInstance> {
  const server = Fastify();
  server.decorate("attention", () => []);
  server.decorate("timeZone", "UTC");
  server.decorateRequest("signedIn", true);
  server.decorateRequest("notice", undefined);
  server.decorateRequest("requester", null);
  server.addHook("onRequest", async (request) => {
    request.requester = { role, name: `zoë (${role})` };
  });
  const env = { GATEWAY_URL: url, PROXY_MASTER_KEY: MASTER_KEY };
  const state = { page: () => null, onSilent: () => {} };
  registerPlaygroundPage(server, openNounContext(env, "UTC", state));
  await server.listen({ host: "127.0.0.1", port: 0 });
  return server;
}

test("a viewer needs a key, which decides", async () => {
  const key = await gateway.createKey({
    key_alias: "viewer",
    models: ["mock"],
  });
  const server = await pagesFor("viewer", gateway.url);
  const ask = async (fields: Readonly<Record<string, string>>) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) {
      body.append(name, value);
    }
    const url = `${server.listeningOrigin}/playground`;
    const answer = await fetch(url, { method: "POST", body });
    return answer.text();
  };
  const keyless = await ask({ model: "mock", prompt: "hi" });
  expect(keyless).toContain("Key is required: your role may not");
  expect(keyless).not.toContain("default_user_id");
  expect(await ask({ model: "mock", prompt: "hi", key })).toContain("word0");
  expect(await ask({ model: "priced", prompt: "hi", key })).toContain(
    "1 of 1 failed.",
  );
  await server.close();
});

test("the budget of an end user limits the calls with the session of that user", async () => {
  await gateway.post("/customer/new", {
    user_id: "zoë (operator)",
    max_budget: 0.01,
  });
  const server = await pagesFor("operator", gateway.url);
  const ask = async () => {
    const body = new FormData();
    body.append("model", "priced");
    body.append("prompt", "hi");
    const url = `${server.listeningOrigin}/playground/session`;
    return eventsOf(fetch(url, { method: "POST", body }));
  };
  expect((await ask()).at(-1)?.answer?.error).toBeNull();
  const [ended] = await ask();
  expect(ended?.answer?.error).toContain("Budget has been exceeded!");
  await server.close();
});

test("without a gateway the page says so", async () => {
  const server = await pagesFor("viewer", "http://127.0.0.1:1");
  const answer = await fetch(`${server.listeningOrigin}/playground`);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain(
    "The gateway at http://127.0.0.1:1 does not answer (ECONNREFUSED)",
  );
  await server.close();
});

test("models can be named in the address", async () => {
  const answer = await fetch(`${address}/playground?model=gone&model=%22%3Cx`, {
    headers: { ...asOperator, accept: "text/html" },
  });
  const page = await answer.text();
  expect(page).toContain('id="p-model" value="gone"');
  expect(page).toContain('id="p-model-2" value="&quot;&lt;x"');
});
