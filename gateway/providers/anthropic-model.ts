/** What differs between Claude's generations in a request. */
export interface ModelTraits {
  /** `budget`: `thinking.budget_tokens`; `adaptive`: `thinking: {type: adaptive}` and `output_config.effort`. */
  readonly thinking: "budget" | "adaptive";
  /** `thinking: {type: disabled}` is refused. */
  readonly alwaysThinks: boolean;
  /** Whether `temperature`, `top_p` and `top_k` are taken at all. */
  readonly sampling: boolean;
  /** `temperature` and `top_p` together are refused. */
  readonly oneSampler: boolean;
  readonly xhigh: boolean;
}

/** Both orders of names: `claude-sonnet-4-5-20250929` and `claude-3-7-sonnet-20250219`; a date is no version. */
const VERSION = /claude-(?:[a-z]+-)*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

/**
 * The traits of a model by its name. By version and not by a list, so that a model of tomorrow is treated like the
 * newest of today. Sources: platform.claude.com, pages "Thinking", "Effort" and "Migration guide".
 */
export function traitsOf(model: string): ModelTraits {
  const name = model.toLowerCase();
  if (!name.includes("claude"))
    // Another server that speaks the format: the form that all of them know.
    return {
      thinking: "budget",
      alwaysThinks: false,
      sampling: true,
      oneSampler: false,
      xhigh: false,
    };
  const match = VERSION.exec(name);
  const version =
    match === null
      ? Number.POSITIVE_INFINITY
      : Number(match[1]) + Number(match[2] ?? 0) / 100;
  return {
    thinking: version >= 4.06 ? "adaptive" : "budget",
    alwaysThinks: /claude-(fable|mythos)/.test(name),
    sampling: version < 4.07,
    oneSampler: version >= 4.01,
    xhigh: version >= 4.07,
  };
}
