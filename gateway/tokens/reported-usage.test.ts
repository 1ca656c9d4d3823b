import { expect, test } from "vitest";
import {
  inputOnly,
  inputUsageFromOpenAI,
  usageFromOpenAI,
  type Usage,
} from "./reported-usage.ts";

test.each<[unknown, Partial<Usage> | null]>([
  [null, null],
  ["many", null],
  [{}, null],
  [
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    { inputTokens: 10, outputTokens: 5 },
  ],
  [{ prompt_tokens: 8, total_tokens: 8 }, { inputTokens: 8 }],
  [
    {
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 64, audio_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 4 },
    },
    {
      inputTokens: 100,
      outputTokens: 50,
      cachedInputTokens: 64,
      audioInputTokens: 3,
      reasoningTokens: 20,
      audioOutputTokens: 4,
    },
  ],
  [
    {
      input_tokens: 7,
      output_tokens: 3,
      input_tokens_details: { cached_tokens: 2 },
      output_tokens_details: { reasoning_tokens: 1 },
    },
    {
      inputTokens: 7,
      outputTokens: 3,
      cachedInputTokens: 2,
      reasoningTokens: 1,
    },
  ],
  [
    { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 },
    { inputTokens: 9, outputTokens: 1, cachedInputTokens: 4 },
  ],
  [
    { prompt_tokens: 9, completion_tokens: 1, cached_tokens: 7 },
    { inputTokens: 9, outputTokens: 1, cachedInputTokens: 7 },
  ],
  [
    { prompt_tokens: 10, completion_tokens: 1, cache_read_input_tokens: 50 },
    { inputTokens: 60, outputTokens: 1, cachedInputTokens: 50 },
  ],
  [
    {
      prompt_tokens: 9,
      completion_tokens: 1,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 5 },
      cache_creation_input_tokens: 20,
    },
    {
      inputTokens: 34,
      outputTokens: 1,
      cachedInputTokens: 5,
      cacheWriteTokens: 20,
    },
  ],
  [
    { prompt_tokens: 1, cache_read_input_tokens: 1e9 },
    { inputTokens: 1e9, cachedInputTokens: 1e9 },
  ],
  [{ prompt_tokens: "9", completion_tokens: -1, total_tokens: NaN }, null],
  [
    { prompt_tokens: 9, completion_tokens: null, prompt_tokens_details: null },
    { inputTokens: 9 },
  ],
])("usage %j is read leniently", (json, parts) => {
  expect(usageFromOpenAI(json)).toEqual(
    parts === null ? null : { ...inputOnly(0), ...parts },
  );
});

test.each<[unknown, Partial<Usage> | null]>([
  [null, null],
  [{ prompt_tokens: 8, total_tokens: 8 }, { inputTokens: 8 }],
  [{ total_tokens: 10 }, { inputTokens: 10 }],
  [{ prompt_tokens: 0, total_tokens: 0 }, null],
  [{ prompt_tokens: 0, total_tokens: 0, cost: 0.5 }, { reportedCost: 0.5 }],
])("usage %j of an answer without output", (json, parts) => {
  expect(inputUsageFromOpenAI(json)).toEqual(
    parts === null ? null : { ...inputOnly(0), ...parts },
  );
});
