import { tokenLimitsOf } from "../pricing/token-limits.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/** Differences between the generations of Claude in a request. */
export interface ModelTraits {
  /** `budget`: `thinking.budget_tokens`; `adaptive`: `thinking: {type: adaptive}` and `output_config.effort`. */
  readonly thinking: "budget" | "adaptive";
  /** Whether `thinking.budget_tokens` is accepted. */
  readonly budgets: boolean;
  /** The type of `thinking` that turns it off; null: there is none. */
  readonly thinkingOff: "disabled" | "between_tools" | null;
  /** Whether a call of a tool can be demanded: of later models it cannot, as they think before. */
  readonly forcedTools: boolean;
  /** Whether `temperature`, `top_p` and `top_k` are accepted. */
  readonly sampling: boolean;
  /** `temperature` and `top_p` together are rejected. */
  readonly oneSampler: boolean;
  /** Whether `output_config.effort` is accepted. */
  readonly efforts: boolean;
  readonly xhigh: boolean;
  /** Whether messages after the start may have the role `system`. */
  readonly systemTurns: boolean;
}

/** Both orders of names: `claude-sonnet-4-5-20250929` and `claude-3-7-sonnet-20250219`; a date is not a version. */
const VERSION = /claude-(?:[a-z]+-)*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

/**
 * The traits of a model by its name. By version instead of a list, so that a future model is treated like the
 * newest known one. Sources: platform.claude.com, pages "Thinking", "Effort", and "Migration guide" and "What's new" of each model.
 */
export function traitsOf(model: string): ModelTraits {
  const name = model.toLowerCase();
  if (!name.includes("claude"))
  // Another server of this format: the form that all of them support.
  {
    return {
      thinking: "budget",
      budgets: true,
      thinkingOff: "disabled",
      forcedTools: true,
      sampling: true,
      oneSampler: false,
      efforts: false,
      xhigh: false,
      systemTurns: false,
    };
  }
  const version = versionOf(name);
  return {
    thinking: version >= 4.06 ? "adaptive" : "budget",
    budgets: version < 4.07,
    thinkingOff: thinkingOffOf(name, version),
    forcedTools: !thinksFirst(name, version),
    sampling: version < 4.07,
    oneSampler: version >= 4.01,
    efforts: version >= (name.includes("opus") ? 4.05 : 4.06),
    xhigh: version >= 4.07,
    systemTurns: version >= (name.includes("sonnet") ? 5.05 : 4.08),
  };
}

/** Whether an answer cannot begin with a call: Opus and Sonnet since 5.5, Fable and Mythos since 5.1. */
function thinksFirst(name: string, version: number): boolean {
  return (
    version >= (/fable|mythos/.test(name) ? 5.01 : 5.05) &&
    !name.includes("haiku")
  );
}

function thinkingOffOf(
  name: string,
  version: number,
): ModelTraits["thinkingOff"] {
  if (/fable|mythos/.test(name)) {
    return null;
  }
  if (!thinksFirst(name, version)) {
    return "disabled";
  }
  return name.includes("sonnet") ? "between_tools" : null;
}

/** 4.05 for `claude-sonnet-4-5`; infinite for a name without a version. */
function versionOf(name: string): number {
  const match = VERSION.exec(name);
  return match === null
    ? Number.POSITIVE_INFINITY
    : Number(match[1]) + Number(match[2] ?? 0) / 100;
}

/** Maximum output tokens by the version from which they hold, newest first. */
const MAX_OUTPUT: readonly (readonly [
  from: number,
  family: RegExp,
  tokens: number,
])[] = [
  [4.06, /fable|mythos|opus|sonnet/, 128_000],
  [4.05, /./, 64_000],
  [4, /opus/, 32_000],
  [3.07, /./, 64_000],
  [3.05, /./, 8_192],
  [0, /./, 4_096],
];

/** Maximum output of a deployment's model, by its `model_info`, its prices or its name; null: unknown. */
export function maxOutputTokens({
  info,
  priceCard,
  baseModel,
  model,
}: PricedDeployment): number | null {
  return (
    tokenLimitsOf(info).maxOutputTokens ??
    priceCard?.maxOutputTokens ??
    maxOutputOf(baseModel ?? model)
  );
}

/**
 * Maximum output tokens of a Claude model; null for other models. By version, since the price
 * catalogue has no maximum. Source: platform.claude.com, the page "Overview" of each model.
 */
function maxOutputOf(model: string): number | null {
  const name = model.toLowerCase();
  if (!name.includes("claude")) {
    return null;
  }
  const version = versionOf(name);
  const found = MAX_OUTPUT.find(
    ([from, family]) => version >= from && family.test(name),
  );
  return found?.[2] ?? null;
}
