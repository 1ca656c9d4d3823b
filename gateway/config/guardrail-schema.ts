import { z } from "zod";
import {
  choice,
  duration,
  flag,
  name,
  record,
  text,
  serverAddress,
  whole,
} from "./fields.ts";

export const guardrailEntry = z.object({
  guardrail_name: name(),
  litellm_params: z.unknown().optional(),
  guardrail_info: record("a mapping"),
});

const MAX_WINDOW = 100_000;

/** What every kind of guardrail takes. */
const COMMON = {
  guardrail: z.unknown().optional(),
  mode: z.unknown().optional(),
  default_on: flag(),
  unreachable_fallback: choice(["fail_closed", "fail_open"]),
  stream_window: whole(1, MAX_WINDOW),
};

const action = () =>
  choice(["BLOCK", "MASK"], { block: "BLOCK", mask: "MASK" });

export const patternsGuardrail = z.object({
  ...COMMON,
  patterns: z.unknown().optional(),
  blocked_words: z.unknown().optional(),
  pattern_redaction_format: text(),
  keyword_redaction_tag: text(),
});

export const patternEntry = z.object({
  pattern_type: choice(["prebuilt", "regex"]),
  pattern_name: text(),
  pattern: text(),
  name: text(),
  action: action(),
});

export const wordEntry = z.object({
  keyword: name(),
  action: action(),
  description: text(),
});

export const secretsGuardrail = z.object({ ...COMMON, action: action() });

export const moderationGuardrail = z.object({ ...COMMON, model: name() });

export const serviceGuardrail = z.object({
  ...COMMON,
  api_base: serverAddress(),
  api_key: text(),
  headers: record("a mapping of header names to values"),
  additional_provider_specific_params: record("a mapping"),
  timeout: duration(),
});
