import { expect, test } from "vitest";
import { secret } from "../config/secret.ts";
import { withoutSecret } from "./error-answer.ts";

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
