import { expect, test } from "vitest";
import type { CallInFull } from "../../../supervisor/gateway/calls.ts";
import { viewCall } from "./call-view.ts";
import { viewPrompt } from "./prompt-view.ts";

const NOW = Date.UTC(2026, 10, 22);

const token = "a".repeat(64);
const DEPLOYMENT = {
  model_id: "d1",
  model_group: "sonnet",
  provider: "anthropic",
  model: "claude",
  api_base: null,
};
const STEP = {
  as: null,
  deployment: null,
  status: null,
  error: null,
  outrun: false,
  ms: null,
  cooling_until: null,
} as const;

const call: CallInFull = {
  request_id: "call-1",
  startTime: "2026-11-21T10:00:00.000Z",
  endTime: "2026-11-21T10:00:01.250Z",
  call_type: "acompletion",
  model_group: "sonnet",
  spend: 0.0021,
  total_tokens: 1_100,
  prompt_tokens: 1_000,
  completion_tokens: 100,
  cached_tokens: 400,
  cache_write_tokens: 0,
  cache_hit: "False",
  status: "success",
  payer: null,
  request_duration_ms: 1_250,
  api_key: token,
  custom_llm_provider: "anthropic",
  user: "u1",
  user_alias: "Anna",
  team_id: null,
  team_alias: null,
  organization_id: null,
  end_user: null,
  request_tags: ["red", "blue"],
  cache_key: null,
  session_id: null,
  requester_ip_address: "10.0.0.1",
  response_id: "msg_1",
  saved: 0.0004,
  unpriced: false,
  metadata: { user_api_key_alias: "laptop", error_information: null },
  times: {
    waited_ms: 1_200,
    first_token_ms: 300,
    overhead_ms: 50,
    tokens_per_second: 105.3,
  },
  cost: {
    lines: [
      {
        part: "input_tokens",
        used: 600,
        price: "3",
        factor: "0.5",
        amount: "0.0009",
      },
      {
        part: "web_searches",
        used: 1,
        price: "0.0012",
        factor: null,
        amount: "0.0012",
      },
    ],
    rounding: "0",
    total: "0.0021",
  },
  path: [{ ...STEP, kind: "answer", as: "first", deployment: DEPLOYMENT }],
  prompt_is_stored: true,
};

test("a call in full: whose it is, its times, its cost line by line and its identifiers", () => {
  const view = viewCall(call, "UTC", NOW);
  expect(view).toMatchObject({
    title: "sonnet answered in 1.3 s for $ 0.0021.",
    look: "ok",
    facts: [
      { text: "21 Nov, 10:00:00" },
      { text: "model sonnet", href: "/models/model?id=sonnet" },
      { text: "key laptop", href: `/keys/${token}` },
      { text: "user Anna", href: "/users/user?id=u1" },
    ],
    error: null,
    cost: {
      lines: [
        {
          part: "Input",
          used: "600",
          price: "$ 3 per million × 0.5",
          amount: "$ 0.0009",
        },
        { part: "Web searches", price: "$ 0.0012 each", amount: "$ 0.0012" },
      ],
      rounding: null,
      total: "$ 0.0021",
    },
    path: [
      {
        look: "ok",
        what: "First attempt",
        where: "sonnet: anthropic, claude",
        result: "answered",
      },
    ],
    prompt: { href: "/spend/calls/call-1/prompt" },
  });
  const figures = Object.fromEntries(
    view.figures.map(({ name, value, note }) => [name, `${value} ${note}`]),
  );
  expect(figures).toMatchObject({
    "First token": "300 ms after the request",
    "Hearth's own time": expect.stringContaining("50 ms"),
    Speed: "105 output tokens per second",
    "Tokens in": "1,000 400 cached",
  });
  expect(view.details).toContainEqual({
    name: "Tags",
    value: "red, blue",
    header: "x-hearth-tags",
  });
});

const NO_LINES = { lines: null, rounding: "0", total: "0" };

test.each<[string, Partial<CallInFull>, string]>([
  [
    "The cache answered for sonnet in 1.3 s.",
    { cache_hit: "True", spend: 0 },
    "Answers from the cache cost nothing.",
  ],
  [
    "sonnet failed after 1.3 s.",
    { status: "failure", spend: 0 },
    "The call failed before a provider charged anything.",
  ],
  [
    "The call of sonnet was interrupted.",
    { status: "interrupted" },
    "Billed at its counted input, because the gateway stopped before the answer ended.",
  ],
  [
    "Spend was corrected, without a call.",
    { payer: "key:a" },
    "Set by hand, or imported.",
  ],
  [
    "sonnet answered in 1.3 s for $ 0.00.",
    { unpriced: true, spend: 0 },
    "No price is known for this model: its calls count as free. Set its prices in the configuration.",
  ],
])("%s", (title, changed, note) => {
  const view = viewCall({ ...call, cost: NO_LINES, ...changed }, "UTC", NOW);
  expect(view.title).toBe(title);
  expect(view.cost.notes[0]).toBe(note);
  expect(view.cost.lines).toEqual([]);
});

test("the path tells retries, fallbacks, parallel attempts and cooldowns apart", () => {
  const failed = { ...STEP, kind: "attempt", deployment: DEPLOYMENT } as const;
  const { path } = viewCall(
    {
      ...call,
      path: [
        { ...STEP, kind: "passed_over", deployment: DEPLOYMENT },
        {
          ...failed,
          as: "retry",
          status: 500,
          error: "broken \u202eabc",
          ms: 120,
          cooling_until: "2026-11-21T10:05:00.000Z",
        },
        { ...failed, as: "retry", status: 499, error: "late", outrun: true },
        {
          ...STEP,
          kind: "answer",
          as: "fallback",
          deployment: { ...DEPLOYMENT, model: null, api_base: "http://x" },
        },
      ],
    },
    "UTC",
    NOW,
  );
  expect(path.map(({ what, result }) => `${what}: ${result}`)).toEqual([
    "Passed over: was cooling down after failures",
    "Retry: 500 broken abc; cooling down until 21 Nov, 10:05:00",
    "Attempt: late",
    "Fallback: answered",
  ]);
  expect(path[1]?.took).toBe("120 ms");
  expect(path[3]?.where).toBe("sonnet: d1 · http://x");
});

test("prompts and answers are shown as texts in each format", () => {
  const shown = viewPrompt({
    headers: { "user-agent": "x" },
    messages: [
      { role: "system", content: "be brief" },
      {
        role: "user",
        content: [
          { type: "text", text: "look \u202eat" },
          { type: "image_url", image_url: { url: "data:…" } },
        ],
      },
      { role: "assistant", content: null, tool_calls: [{ id: "t" }] },
    ],
    response: { choices: [{ message: { role: "assistant", content: "hi" } }] },
  });
  expect(shown.prompt.map(({ by }) => by)).toEqual([
    "system",
    "user",
    "assistant",
  ]);
  expect(shown.prompt[1]?.text).toMatch(/^look at\n\{/);
  expect(shown.prompt[2]?.text).toContain('"tool_calls"');
  expect(shown.answer).toEqual([{ by: "assistant", text: "hi" }]);
  const of = (response: unknown) =>
    viewPrompt({ headers: {}, messages: "say hi", response }).answer;
  expect(of("word0 word1")).toEqual([{ by: "assistant", text: "word0 word1" }]);
  expect(
    of({ role: "assistant", content: [{ type: "text", text: "hi" }] }),
  ).toMatchObject([{ by: "assistant", text: expect.stringMatching(/^hi/) }]);
  expect(of(null)).toEqual([]);
  expect(of("x".repeat(50_000))[0]?.text).toMatch(
    /… \(10,000 more characters\)$/,
  );
});
