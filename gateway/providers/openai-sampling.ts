import type { CallBody } from "../calls/body.ts";
import {
  dialectOf,
  effortFor,
  effortOfBudget,
  isChatOnly,
  leastEffort,
} from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isRecord, numberOf, recordOf } from "../../core/json.ts";
import { googleToolPaths } from "./gemini-tools.ts";
import { changedIn } from "./neutral-values.ts";
import { isOpenAi } from "./responses-request.ts";

/** Models that always reason. */
const ALWAYS_REASONING =
  /^(o\d|gpt-5(?!\.)|gpt-[\d.]+-pro|gpt-6-(astra|rosalind)|gpt-6\.1-sol)/;
/** Models that reason unless the effort is `none`. */
const REASONING = /^gpt-(5\.([5-9]|\d\d)|[6-9]|\d\d)/;
/** Models that reason if they are given an effort. */
const MAY_REASON = /^gpt-5\.[1-4]/;
const NEVER_REASONING = /^(chatgpt-|gpt-[34])/;
/** Of those that always reason, the ones that take the effort `minimal`. */
const MINIMAL = /^gpt-5(-mini|-nano)?(-\d|$)/;
const TAKES_MAX = /^gpt-([6-9]|\d\d)/;
const WITHOUT_STOP = /^(o3(?!-mini)|o4|gpt-([5-9]|\d\d))/;

const PENALTIES = ["presence_penalty", "frequency_penalty"];
const LOGPROBS = ["logit_bias", "logprobs", "top_logprobs"];
/** What a model takes while it reasons with the values alone that change nothing. */
const WHILE_REASONING = ["temperature", "top_p", ...PENALTIES, ...LOGPROBS];

/** Parameters that certain models reject, most of them whatever the value. */
interface Rejection {
  readonly providers: readonly string[];
  readonly models: RegExp;
  readonly names: readonly string[];
  /** The values that a model has already, and takes. */
  readonly own?: Readonly<Record<string, unknown>>;
}

const REJECTIONS: readonly Rejection[] = [
  // Models that search before each answer: https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat
  {
    providers: ["openai"],
    models: /-search-(preview|api)/,
    names: ["temperature", "top_p", "n", ...PENALTIES, "reasoning_effort"],
  },
  // https://console.groq.com/docs/openai
  {
    providers: ["groq"],
    models: /./,
    names: [...LOGPROBS, "n", "web_search_options"],
  },
  // https://docs.mistral.ai/api
  {
    providers: ["mistral", "codestral"],
    models: /./,
    names: [...LOGPROBS, "web_search_options"],
  },
  // These ignore it, and an answer without the search would look like one with it.
  {
    providers: ["ollama", "ollama_chat", "deepseek", "cerebras"],
    models: /./,
    names: ["web_search_options"],
  },
  // https://docs.x.ai/docs/guides/live-search
  { providers: ["xai"], models: /./, names: ["web_search_options"] },
  // https://docs.x.ai/docs/guides/reasoning
  {
    providers: ["xai"],
    models: /^grok-(?!2|3(?!-mini))/,
    names: [...PENALTIES, "stop"],
  },
  {
    providers: ["xai"],
    models:
      /^grok-(2|3(?!-mini)|4-(?!latest)|4\.1|4\.20(?!-multi)|build|code|composer)/,
    names: ["reasoning_effort"],
  },
  // https://platform.moonshot.ai/docs/guide/kimi-k2-5-quickstart
  {
    providers: ["moonshot"],
    models: /^kimi-k(2\.[5-9]|[3-9])/,
    names: ["temperature", "top_p", "n", ...PENALTIES],
    own: { temperature: 0.6, top_p: 0.95 },
  },
];

function rejectionsOf(deployment: PricedDeployment): readonly Rejection[] {
  const { baseModel, model, providerName } = deployment;
  return REJECTIONS.filter(
    ({ providers, models }) =>
      providers.includes(providerName) && models.test(baseModel ?? model),
  );
}

/** Of these, also values that change nothing are left out. */
export function rejectedBy(deployment: PricedDeployment): readonly string[] {
  return rejectionsOf(deployment).flatMap(({ names }) => names);
}

/**
 * Parameters of a chat that OpenAI's models reject: one that only others have, an effort where they do not reason, and those of sampling
 * while they do. Of other providers, what they are known to reject.
 * https://developers.openai.com/api/docs/guides/latest-model
 * https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning
 */
export function refusedSampling(
  asked: CallBody,
  deployment: PricedDeployment,
): readonly string[] {
  const body = withEffort(asked, deployment);
  const rejected = [
    ...rejectionsOf(deployment).flatMap(({ names, own = {} }) =>
      changedIn(body, names).filter((name) => body[name] !== own[name]),
    ),
    ...(rejectsThinking(deployment) ? changedIn(body, ["thinking"]) : []),
    ...(isAtGoogle(deployment) ? [] : changedIn(body, ["extra_body"])),
    ...googleToolPaths(body),
  ];
  return isOpenAi(deployment)
    ? [...new Set([...rejected, ...refusedByOpenAi(body, deployment)])]
    : rejected;
}

/** Whether a model rejects an effort, in a chat or in Responses. */
export function refusesEffort(
  effort: unknown,
  deployment: PricedDeployment,
): boolean {
  const body = { model: deployment.model, reasoning_effort: effort };
  return refusedSampling(body, deployment).includes("reasoning_effort");
}

function refusedByOpenAi(
  body: CallBody,
  deployment: PricedDeployment,
): readonly string[] {
  const name = deployment.baseModel ?? deployment.model;
  const effort =
    takesEffort(body, deployment) || body["reasoning_effort"] == null
      ? []
      : ["reasoning_effort"];
  const reasons = !isChatOnly(deployment);
  return [
    ...(body["top_k"] == null ? [] : ["top_k"]),
    ...effort,
    ...(reasons && isReasoning(body, name)
      ? changedIn(body, WHILE_REASONING)
      : []),
    ...(reasons && WITHOUT_STOP.test(name) ? changedIn(body, ["stop"]) : []),
  ];
}

/** Servers that reject Anthropic's `thinking`; DeepSeek, Kimi and others have a parameter of this name themselves. */
const WITHOUT_THINKING: ReadonlySet<string> = new Set([
  "groq",
  "mistral",
  "codestral",
  "cerebras",
]);

function rejectsThinking(deployment: PricedDeployment): boolean {
  return isOpenAi(deployment) || WITHOUT_THINKING.has(deployment.providerName);
}

/** A chat with Anthropic's `thinking` as an effort, where the server rejects it; a model that does not reason lacks it. */
export function withEffort(
  body: CallBody,
  deployment: PricedDeployment,
): CallBody {
  const { thinking, ...rest } = body;
  if (thinking == null || !rejectsThinking(deployment)) {
    return body;
  }
  const { type, budget_tokens: budget } = recordOf(thinking);
  if (!dialectOf(deployment).reasoning) {
    return type === "enabled" ? body : rest;
  }
  const effort =
    rest["reasoning_effort"] ??
    (type === "disabled"
      ? leastEffort(deployment)
      : type === "enabled"
        ? effortOfBudget(numberOf(budget) ?? 0)
        : null);
  return effort === null ? rest : { ...rest, reasoning_effort: effort };
}

/** Whether a chat's `extra_body` has a meaning: a body of Gemini's, or of a server of Google's for OpenAI's clients. */
function isAtGoogle({ provider, apiBase }: PricedDeployment): boolean {
  return provider === "gemini" || /\.googleapis\.com\//.test(apiBase);
}

/** Models for chat alone, such as `gpt-5.1-chat-latest`, take `medium` at most. */
function takesEffort(
  { reasoning_effort: effort }: CallBody,
  deployment: PricedDeployment,
): boolean {
  return isChatOnly(deployment)
    ? effort === "medium"
    : !NEVER_REASONING.test(deployment.baseModel ?? deployment.model);
}

/** The nearest effort that a model of OpenAI takes: clients send the least and the highest ones whichever model answers. */
export function nearestEffort(
  effort: unknown,
  deployment: PricedDeployment,
): unknown {
  if (isRecord(effort)) {
    return { ...effort, effort: nearestEffort(effort["effort"], deployment) };
  }
  const name = deployment.baseModel ?? deployment.model;
  if (!isOpenAi(deployment) || !/^(o\d|gpt-)/.test(name)) {
    return effort;
  }
  if (effort === "xhigh" || effort === "max") {
    return TAKES_MAX.test(name) ? effort : effortFor(deployment, effort);
  }
  if (
    effort !== "minimal" &&
    !(effort === "none" && ALWAYS_REASONING.test(name))
  ) {
    return effort;
  }
  return MINIMAL.test(name) ? "minimal" : "low";
}

function isReasoning(
  { reasoning_effort: effort }: CallBody,
  name: string,
): boolean {
  return (
    ALWAYS_REASONING.test(name) ||
    (REASONING.test(name) && effort !== "none") ||
    (MAY_REASON.test(name) && effort != null && effort !== "none")
  );
}
