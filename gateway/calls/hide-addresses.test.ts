import { expect, test } from "vitest";
import type { Caller } from "../access/callers.ts";
import type { Catalog } from "../routing/catalog.ts";
import { errorEventFor, hideAddresses } from "./hide-addresses.ts";

const catalog = {
  deployments: [
    { apiBase: "http://runner-a:8000/v1" },
    { apiBase: "https://models.example.org/v1" },
    { apiBase: "" },
  ],
} as unknown as Catalog;

test.each([
  [
    "http://runner-a:8000/v1 cannot be reached",
    "the provider cannot be reached",
  ],
  ["connect ECONNREFUSED 10.0.0.5:8000", "connect ECONNREFUSED the provider"],
  ["connect ECONNREFUSED ::1:11434", "connect ECONNREFUSED the provider"],
  ["connect to [fd00::2]:80 failed", "connect to the provider failed"],
  ["getaddrinfo ENOTFOUND runner-a", "getaddrinfo ENOTFOUND the provider"],
  ["no route to vllm-0:8000, retry", "no route to the provider, retry"],
  ['{"url":"http://192.168.1.20/x"}', '{"url":"the provider"}'],
  ["http://10.0.0.5/v1: busy.", "the provider: busy."],
  ["dial 10.0.0.5:8000: refused", "dial the provider: refused"],
  ["models.example.org said no", "the provider said no"],
  ["see gpu.lan or localhost:11434.", "see the provider or the provider."],
])("hides the address in %j", (text, shown) => {
  expect(hideAddresses(catalog, text)).toBe(shown);
});

test.each([
  "You exceeded your quota, see https://platform.openai.com/account/billing.",
  "maximum context length is 8192 tokens, max_tokens:4096 given at 12:30:45",
  'model "llama3.2:1b" not found, try gpt-4o-mini or claude-sonnet-4.5',
  "std::bad_alloc in worker: retry after 3.5 s",
  "`messages[0].role` must be a text.",
])("leaves %j as it is", (text) => {
  expect(hideAddresses(catalog, text)).toBe(text);
});

test("of a failed response, what the model and the caller wrote stays as it is", () => {
  const caller = {
    kind: "key",
    team: null,
    organization: null,
  } as unknown as Caller;
  const response = {
    status: "failed",
    error: { message: "http://10.0.0.5/v1 is down" },
    instructions: "Use localhost:8080.",
    output: [{ text: "Open http://192.168.1.20/x" }],
  };
  const event = { type: "response.failed", response };
  const shown = errorEventFor(caller, { catalog }, JSON.stringify(event));
  expect(JSON.parse(shown)).toEqual({
    ...event,
    response: { ...response, error: { message: "the provider is down" } },
  });
  const error = JSON.stringify({ error: "http://10.0.0.5/v1 is down" });
  expect(errorEventFor(caller, { catalog }, error)).toBe(
    '{"error":"the provider is down"}',
  );
});

test("a text with a word for which any number of characters of a scheme takes minutes is read", () => {
  const word = `${"a".repeat(400_000)}_`;
  expect(hideAddresses(catalog, `${word} http://10.0.0.5`)).toBe(
    `${word} the provider`,
  );
});
