import { hash } from "node:crypto";
import { get } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";

let fixture: AdminFixture;
const HOSTILE = `<script>alert("x")</script>'"&\u202e`;

beforeAll(async () => {
  fixture = await startAdminFixture(`
  - model_name: absent
    provider_params:
      model: openai/any
      api_key: os.environ/HEARTH_TEST_UNSET_KEY
`);
});

afterAll(() => fixture?.stop());

interface Loaded {
  readonly status: number;
  readonly text: string;
  readonly policy: string;
}

async function load(
  path: string,
  form?: Readonly<Record<string, string>>,
): Promise<Loaded> {
  const answer = await fetch(fixture.url + path, {
    headers: { accept: "text/html" },
    ...(form === undefined
      ? {}
      : { method: "POST", body: new URLSearchParams(form) }),
  });
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  return {
    status: answer.status,
    text: await answer.text(),
    policy: answer.headers.get("content-security-policy") ?? "",
  };
}

test.each(["/", "/me", "/docs"])(
  "%s remembers a theme, and follows the device without one",
  async (path) => {
    expect((await load(path)).text).toContain('data-theme="system"');
    const headers = { accept: "text/html" };
    const chosen = await fetch(`${fixture.url}${path}?theme=dark`, {
      headers,
      redirect: "manual",
    });
    expect(chosen.status).toBe(303);
    expect(chosen.headers.get("location")).toBe(path);
    const [cookie = ""] = chosen.headers.get("set-cookie")?.split(";") ?? [];
    const page = await fetch(`${fixture.url}${path}`, {
      headers: { ...headers, cookie },
    });
    expect(await page.text()).toContain('data-theme="dark"');
    const hostile = await fetch(`${fixture.url}${path}`, {
      headers: { ...headers, cookie: 'hearth_theme="><script>' },
    });
    expect(await hostile.text()).toContain('data-theme="system"');
  },
);

test.each(["/nonsense", "/me/x", "/docs/x", "/v1", "/ui", "/%3Cscript%3E"])(
  "%s is answered to a browser with a page, to programs with JSON",
  async (path) => {
    const { status, text, policy } = await load(path);
    expect(status).toBe(404);
    expect(policy).toContain("default-src 'none'");
    expect(text).toContain("<h1>Page not found.</h1>");
    expect(text).toContain('<a href="/me">');
    expect(text).toContain('<a href="/docs">');
    const answer = await fetch(fixture.url + path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get("vary")).toBe("accept, origin");
    expect(await answer.json()).toHaveProperty("error.message");
  },
);

function contentsOf(text: string, tag: string): readonly string[] {
  return [...text.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, "g"))].map(
    ([, content = ""]) => content,
  );
}

test.each(["/", "/me", "/docs"])(
  "%s runs its own style and script only, and loads nothing",
  async (path) => {
    const { status, text, policy } = await load(path);
    expect(status).toBe(200);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    for (const content of [
      ...contentsOf(text, "style"),
      ...contentsOf(text, "script"),
    ]) {
      const digest = hash("sha256", content, "base64");
      expect(policy).toContain(`'sha256-${digest}'`);
    }
    expect(text).not.toMatch(/\s(src|action|href)="(https?:)?\/\//);
    expect(text).not.toMatch(/\sstyle="|\son\w+="/);
    expect(text.length).toBeLessThan(260_000);
  },
);

test("the start page says what this is and where to go, as JSON to programs", async () => {
  const { text } = await load("/");
  expect(text).toContain("This is a Hearth gateway.");
  for (const path of ["/docs", "/me", "/openapi.json"]) {
    expect(text).toContain(`href="${path}"`);
  }
  expect(text).toContain(`${fixture.url}/v1/chat/completions`);
  const answer = await fetch(fixture.url);
  expect(answer.headers.get("content-type")).toContain("application/json");
  expect(answer.headers.get("vary")).toBe("accept");
  const view = (await answer.json()) as Readonly<Record<string, unknown>>;
  expect(view).toMatchObject({
    name: "Hearth gateway",
    ready: true,
    base_url: `${fixture.url}/v1`,
    docs: `${fixture.url}/docs`,
    console: null,
    // Aliases are not shown without a key.
    example_model: "MODEL",
  });
  for (const name of ["docs", "openapi", "usage", "health"]) {
    expect((await fetch(String(view[name]))).status).toBe(200);
  }
});

test("examples never contain a host that a shell would run", async () => {
  for (const path of ["/", "/docs", "/me"]) {
    const answer = await requestWithHost(path, "$(id)`id`'\"><script>x");
    expect(answer.includes("http://localhost:4000/v1/chat/completions")).toBe(
      path !== "/me",
    );
    expect(answer).not.toContain("$(id)");
    expect(contentsOf(answer, "script").join()).not.toContain("id`");
  }
});

/** fetch sets the host itself. */
function requestWithHost(path: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(
      fixture.url + path,
      { headers: { host, accept: "text/html" } },
      (answer) => {
        let text = "";
        answer.on("data", (part) => (text += String(part)));
        answer.on("end", () => resolve(text));
      },
    ).on("error", reject);
  });
}

test("the form shows the usage of a key without script, and never the key", async () => {
  await fixture.post("/team/new", { team_id: "t", team_alias: HOSTILE });
  const key = await fixture.createKey({
    team_id: "t",
    user_id: HOSTILE,
    key_alias: HOSTILE,
    max_budget: 5,
    models: ["mock", HOSTILE],
  });
  await fixture.chat(key, "hello");
  await fixture.chat(key, "hello", { model: `${HOSTILE}2` });
  await fixture.running.gateway.ledger.flush();
  await fixture.spend(
    ...Array.from({ length: 25 }, (_, at) => ({
      api_key: hashKey(key),
      model_group: `${HOSTILE}call${at}`,
      spend: 0.01,
      started_at: new Date(Date.now() - (at + 1) * 60_000).toISOString(),
      status: "failure" as const,
      metadata: { error_information: { error_message: `${HOSTILE} at ${at}` } },
    })),
  );
  const { status, text } = await load("/me", { key: ` ${key} `, days: "7" });
  expect(status).toBe(200);
  expect(text).toContain("at 18</small>");
  expect(text).not.toContain("at 19</small>");
  expect(text).not.toContain("Newer calls");
  const [, older = ""] = /name="older" value="([^"]+)"/.exec(text) ?? [];
  const earlier = await load("/me", { key, days: "7", older });
  expect(earlier.text).toContain("at 24</small>");
  expect(earlier.text).not.toContain("at 18</small>");
  expect(earlier.text).toContain('name="newer"');
  expect((await load("/me", { key, older: "x" })).status).toBe(400);
  expect(text).toContain("left.</h1>");
  expect(text).toContain("Latest rejected calls");
  expect(text).toContain("By model");
  expect(text).toContain("&lt;script&gt;alert(&quot;x&quot;)");
  expect(contentsOf(text, "script")).toHaveLength(1);
  expect(text).not.toContain(key);
  expect(text).not.toContain("\u202e");
});

test("models that answer come first, and many are folded", async () => {
  for (let at = 0; at < 30; at++) {
    await fixture.post("/model/new", {
      model_name: `model-${at}`,
      litellm_params: {
        model: "openai/any",
        api_base: "http://127.0.0.1:9/v1",
        api_key: "none",
      },
    });
  }
  const key = await fixture.createKey({});
  const listed = async () => (await load("/me", { key })).text;
  await expect.poll(listed).toContain("<code>model-29</code>");
  const [shown = "", folded = ""] = (await listed()).split(
    /<summary>Show (?=\d)/,
  );
  expect(shown).toContain("<code>mock</code>");
  expect(shown).not.toContain("<code>absent</code>");
  expect(folded).toMatch(/^\d+ more<\/summary>[^]*<code>absent<\/code> <small/);
});

test("an unknown key is rejected with the message of the API", async () => {
  const { status, text } = await load("/me", {
    key: "sk-unknown-to-this-gateway",
  });
  expect(status).toBe(401);
  expect(text).toContain('role="alert"');
  expect(text).toContain("The API key ending in eway is unknown.");
  expect((await load("/me", {})).status).toBe(401);
  expect((await load("/me", { key: "sk-x", days: "<b>" })).status).toBe(401);
});

test("a used-up budget is shown with what to do", async () => {
  const key = await fixture.createKey({ key_alias: "spent", max_budget: 0 });
  const { text } = await load("/me", { key });
  expect(text).toContain("The budget of key spent is used up.");
  expect(text).toContain("Calls are denied until an admin raises the budget.");
  expect(text).toContain("✕");
});

test("other routes accept JSON with any content type", async () => {
  const answer = await fetch(`${fixture.url}/key/health`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await fixture.createKey({})}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "{}",
  });
  expect(await answer.json()).toEqual({ key: "healthy" });
});

test("the API page lists every operation", async () => {
  const { text } = await load("/docs");
  const document = await fixture.get("/openapi.json", "");
  const paths = Object.keys(document["paths"] ?? {});
  expect(paths.length).toBeGreaterThan(50);
  for (const path of paths) {
    expect(text).toContain(`<code>${path}</code`);
  }
  expect(await fixture.get("/routes", "")).toMatchObject({
    routes: expect.arrayContaining([
      {
        methods: ["POST"],
        path: "/v1/chat/completions",
        also_at: ["/chat/completions", expect.any(String)],
        name: "POST /v1/chat/completions",
      },
    ]),
  });
});

test("the API page shows forms with their files, and answers that are files", async () => {
  const { text } = await load("/docs");
  const card = (path: string) =>
    text
      .split("<details")
      .find((part) => part.includes(`<code>${path}</code`)) ?? "";
  expect(card("/v1/audio/transcriptions")).toMatch(
    /Form \(multipart\/form-data\)[^]*file[^]*response_format/,
  );
  expect(card("/v1/audio/speech")).toMatch(
    /Body\s*<\/h3>[^]*<h3>Answer<\/h3>\s*<p class="soft">file<\/p>/,
  );
});
