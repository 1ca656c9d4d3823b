import { expect, test } from "vitest";
import { secret } from "../config/secret.ts";
import type { ProviderCall } from "./provider-call.ts";
import { errorAnswer, withoutSecret } from "./error-answer.ts";

test("the text of a provider loses the key and the credentials in headers that it was sent", () => {
  const deployment = {
    apiKey: secret("key-of-provider"),
    headers: {
      authorization: secret("Bearer token-of-proxy"),
      "x-subscription": secret("subscription-1"),
      "x-priority": secret("low"),
    },
  };
  const text =
    "key-of-provider, Bearer token-of-proxy and token-of-proxy of subscription-1 follow below";
  expect(withoutSecret(text, deployment)).toBe(
    "[secret], Bearer [secret] and [secret] of [secret] follow below",
  );
  expect(withoutSecret(text, { apiKey: null, headers: {} })).toBe(text);
});

test("a text that was read up to a limit loses the start of a key at its end", () => {
  const deployment = { apiKey: secret("key-of-provider"), headers: {} };
  expect(withoutSecret("invalid: key-of-prov", deployment)).toBe(
    "invalid: [secret]",
  );
  expect(withoutSecret("an invalid key", deployment)).toBe("an invalid key");
});

test.each([
  ["0", null],
  ["-1", null],
  ["Wed, 21 Oct 2015 07:28:00 GMT", null],
  ["soon", null],
  ["0.5", 500],
  ["20", 20_000],
  ["1e300", 31 * 24 * 60 * 60 * 1_000],
])("a provider that says retry-after: %s asks for %s ms", (header, ms) => {
  const call = {
    deployment: { apiKey: null, headers: {} },
    error: (_status: number, text: string) => text,
  } as unknown as ProviderCall;
  const headers = { "retry-after": header };
  expect(errorAnswer(call, 503, headers, "busy").retryAfterMs).toBe(ms);
});
