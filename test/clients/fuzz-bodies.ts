import fc from "fast-check";

/** One call route and a valid body for it. */
interface FuzzedRoute {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Errors have Anthropic's shape. */
  readonly anthropic?: true;
}

const MESSAGES = [
  { role: "user", content: [{ type: "text", text: "Hello" }] },
  { role: "assistant", content: "Yes?" },
  { role: "user", content: "Hello again" },
];
const TOOL_TURNS = [
  { role: "user", content: "Weather?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      {
        id: "call_1",
        type: "function",
        function: { name: "t", arguments: "{}" },
      },
    ],
  },
  { role: "tool", tool_call_id: "call_1", content: "sunny" },
];
const CHAT = {
  messages: MESSAGES,
  temperature: 1,
  max_tokens: 10,
  n: 1,
  stream: false,
  stream_options: null,
  user: "anna",
  stop: ["END"],
  response_format: { type: "json_schema", json_schema: { schema: {} } },
  tools: [{ type: "function", function: { name: "t", parameters: {} } }],
  tool_choice: "auto",
  metadata: { tags: ["a"], session_id: "s" },
  tags: ["b"],
  timeout: 20,
  num_retries: 0,
  fallbacks: [],
  cache: { ttl: 1 },
};

/** Every call route with a body, on providers of each format. */
export const FUZZED: readonly FuzzedRoute[] = [
  ...["openai", "anthropic", "gemini", "azure"].flatMap((format) => {
    const model = `${format}-chat`;
    return [
      { path: "/v1/chat/completions", body: { model, ...CHAT } },
      {
        path: "/v1/chat/completions",
        body: { model, messages: TOOL_TURNS, tools: CHAT.tools },
      },
      {
        path: "/v1/messages",
        anthropic: true as const,
        body: {
          model,
          max_tokens: 10,
          messages: [
            ...MESSAGES,
            {
              role: "assistant",
              content: [
                { type: "thinking", thinking: "hm", signature: "s" },
                { type: "tool_use", id: "toolu_1", name: "t", input: {} },
              ],
            },
            {
              role: "user",
              content: [
                {
                  type: "tool_result",
                  tool_use_id: "toolu_1",
                  content: [{ type: "text", text: "sunny" }],
                },
                {
                  type: "image",
                  source: {
                    type: "base64",
                    media_type: "image/png",
                    data: "aGk=",
                  },
                },
              ],
            },
          ],
          system: [{ type: "text", text: "Be kind." }],
          tools: [{ name: "t", input_schema: { type: "object" } }],
          tool_choice: { type: "auto" },
          thinking: { type: "disabled" },
          output_config: { format: { type: "json_schema", schema: {} } },
          metadata: { user_id: "anna" },
          stop_sequences: ["END"],
        },
      },
      {
        path: "/v1/responses",
        body: {
          model,
          input: [
            { role: "user", content: [{ type: "input_text", text: "Hello" }] },
            {
              type: "function_call",
              call_id: "c1",
              name: "t",
              arguments: "{}",
            },
            { type: "function_call_output", call_id: "c1", output: "sunny" },
          ],
          instructions: "Be kind.",
          max_output_tokens: 20,
          tools: [{ type: "function", name: "t", parameters: {} }],
          tool_choice: "auto",
          text: { format: { type: "json_schema", name: "a", schema: {} } },
          reasoning: { effort: "low" },
          metadata: { a: "b" },
        },
      },
      {
        path: `/openai/deployments/${model}/chat/completions?api-version=2024-10-21`,
        body: { messages: MESSAGES },
      },
    ];
  }),
  {
    path: "/v1/messages/count_tokens",
    anthropic: true,
    body: { model: "anthropic-chat", messages: MESSAGES, system: "Be kind." },
  },
  {
    path: "/v1/completions",
    body: { model: "openai-chat", prompt: ["Hello"], n: 1, stream: false },
  },
  {
    path: "/v1/embeddings",
    body: {
      model: "openai-embed",
      input: ["Hello", "you"],
      encoding_format: "float",
      dimensions: 3,
    },
  },
  {
    path: "/v1/moderations",
    body: { model: "openai-other", input: ["Hello"] },
  },
  {
    path: "/v1/images/generations",
    body: { model: "openai-other", prompt: "A fox", n: 1 },
  },
];

const DEEP = 20_000;
const HUGE_CHARACTERS = 300_000;

/** JSON texts to use in place of a value. */
const strangeText = fc.constantFrom(
  "null",
  "true",
  "0",
  "-1",
  "1e400",
  "1.5",
  "9007199254740993",
  '""',
  '"x"',
  "[]",
  "[null]",
  "[[]]",
  "{}",
  '{"type":"text"}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1,"length":-1,"then":1}',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800 🦊 \\u202e ﷽"',
  `"${"a".repeat(HUGE_CHARACTERS)}"`,
  `[${"0,".repeat(150_000)}0]`,
  `[${'{"role":"user","content":"x"},'.repeat(500)}{"role":"user"}]`,
  "[".repeat(DEEP) + "]".repeat(DEEP),
  '{"a":'.repeat(DEEP) + "1" + "}".repeat(DEEP),
  '{"type":"text","text":'.repeat(DEEP) + '"x"' + "}".repeat(DEEP),
  '{"type":"tool_result","tool_use_id":"t","content":['.repeat(5_000) +
    "]}".repeat(5_000),
);

const anyValue = fc.oneof(
  { weight: 3, arbitrary: strangeText },
  {
    weight: 1,
    arbitrary: fc
      .jsonValue({ maxDepth: 3 })
      .map((value) => JSON.stringify(value)),
  },
);

/** Replaced by raw text after the body was serialised. */
const PLACEHOLDER = "@@here@@";

/** The route's body with one or two values, at any depth, changed, removed or added; or arbitrary text. */
export function fuzzedBody(route: FuzzedRoute): fc.Arbitrary<string> {
  const changed = fc
    .tuple(
      fc.constantFrom(...placesIn(route.body)),
      anyValue,
      fc.constantFrom("replace", "replace", "remove", "add"),
      fc.boolean(),
    )
    .map(([path, text, how, stream]) => {
      const body = structuredClone(route.body) as Record<string, unknown>;
      if (stream && "model" in body) {
        body["stream"] = true;
      }
      change(body, path, how);
      return JSON.stringify(body).replace(`"${PLACEHOLDER}"`, () => text);
    });
  const other = fc.oneof(
    anyValue,
    fc.string({ unit: "binary" }),
    fc.constantFrom("", "{", "nul", "[1,", '{"model":', "\ufeff{}", "{}{}"),
  );
  return fc.oneof(
    { weight: 9, arbitrary: changed },
    { weight: 1, arbitrary: other },
  );
}

type Path = readonly (string | number)[];

function placesIn(value: unknown, path: Path = []): readonly Path[] {
  const inner =
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, one]) =>
          placesIn(one, [...path, Array.isArray(value) ? Number(name) : name]),
        )
      : [];
  return path.length === 0 ? inner : [path, ...inner];
}

function change(body: unknown, path: Path, how: string): void {
  let holder = body as Record<string | number, unknown>;
  for (const part of path.slice(0, -1)) {
    holder = holder[part] as Record<string | number, unknown>;
  }
  const last = path.at(-1) ?? "";
  if (how === "remove") {
    if (Array.isArray(holder)) {
      holder.splice(Number(last), 1);
    } else {
      delete holder[last];
    }
  } else if (how === "add" && !Array.isArray(holder)) {
    holder["added_by_nobody"] = PLACEHOLDER;
  } else {
    holder[last] = PLACEHOLDER;
  }
}
