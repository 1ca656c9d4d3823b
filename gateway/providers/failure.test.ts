import { expect, test } from "vitest";
import {
  countsAgainstDeployment,
  isContextWindow,
  isRetryable,
  UpstreamFailure,
} from "./failure.ts";

test.each([
  "This model's maximum context length is 131072 tokens.",
  "Your input exceeds the context window of this model.",
  "prompt is too long: 208310 tokens > 200000 maximum",
  "input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000",
  "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
  "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  "Please reduce the length of the messages or completion.",
  "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
  "Invalid request: Your request exceeded model token limit: 262144",
  "Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 12000, Requested 20714, please reduce your message size and try again.",
  "Range of input length should be [1, 129024]",
  "Input is too long for requested model.",
  "the request exceeds the available context size",
  "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
])("%s: the prompt is too long for the model", (message) => {
  expect(isContextWindow({ status: 400, message })).toBe(true);
  expect(isContextWindow({ status: 429, message })).toBe(false);
});

test.each([
  "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens",
  "Invalid value for 'temperature'.",
  "Rate limit reached: too many requests.",
])("%s: something else is wrong", (message) => {
  expect(isContextWindow({ status: 400, message })).toBe(false);
});

test("a message of beginnings of a known one, for which any number of characters between takes minutes, is read", () => {
  const message = "input token count ".repeat(20_000);
  expect(isContextWindow({ status: 400, message })).toBe(false);
});

test.each([
  [402, "Insufficient Balance", true, true],
  [
    400,
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    true,
    true,
  ],
  [409, "The lock was not free in time.", true, false],
  [498, "capacity_exceeded", true, false],
  [400, "Invalid value for 'temperature'.", false, false],
])(
  "%d %s: another attempt may help: %s, counts against the deployment: %s",
  (status, message, retryable, counts) => {
    const failure = new UpstreamFailure(status, message);
    expect(isRetryable(failure)).toBe(retryable);
    expect(countsAgainstDeployment(failure)).toBe(counts);
  },
);
