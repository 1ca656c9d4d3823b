import type { ParsedArgs } from "citty";
import { UsageError } from "./verb.ts";

/** Options for what limits every key, user and team. */
export const limitArgs = {
  models: {
    type: "string",
    description: "Allowed models, comma-separated, or all",
    valueHint: "alias,alias",
  },
  budget: {
    type: "string",
    description: "Budget, or none",
    valueHint: "dollars",
  },
  per: {
    type: "string",
    description: "Budget reset interval, or none",
    valueHint: "1d|1w|1mo",
  },
  rpm: {
    type: "string",
    description: "Requests per minute, or none",
    valueHint: "number",
  },
  tpm: {
    type: "string",
    description: "Tokens per minute, or none",
    valueHint: "number",
  },
  parallel: {
    type: "string",
    description: "Parallel requests, or none",
    valueHint: "number",
  },
} as const;

/** The limits as the gateway names them; those that are not given stay as they are. */
export function limitsIn(
  args: Partial<ParsedArgs<typeof limitArgs>>,
): Readonly<Record<string, unknown>> {
  return {
    models:
      args.models === "all"
        ? []
        : args.models?.split(",").map((model) => model.trim()),
    max_budget: amountOf("--budget", args.budget),
    budget_duration: orNone(args.per),
    rpm_limit: amountOf("--rpm", args.rpm),
    tpm_limit: amountOf("--tpm", args.tpm),
    max_parallel_requests: amountOf("--parallel", args.parallel),
  };
}

export function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) {
    throw new UsageError(`${option} must be a number, not "${text}".`);
  }
  return number;
}

/** A positive count, for example how many rows are shown. */
export function countOf(option: string, text: string): number {
  const count = numberOf(option, text);
  if (!Number.isInteger(count) || count < 1) {
    throw new UsageError(`${option} must be at least 1, not "${text}".`);
  }
  return count;
}

/** A duration as the gateway names it; "never" removes an expiry. The gateway accepts none, for a key that is expired at once. */
export function lifetimeIn(text: string | undefined): string | undefined {
  if (text !== undefined && /^0+[a-z]*$/.test(text)) {
    throw new UsageError(
      `--expires must be at least 1 s, or never, not "${text}".`,
    );
  }
  return text === "never" ? "-1" : text;
}

/** "none" removes a limit. */
export function orNone(text: string | undefined): string | null | undefined {
  return text === "none" ? null : text;
}

function amountOf(
  option: string,
  text: string | undefined,
): number | null | undefined {
  const given = orNone(text);
  return typeof given === "string" ? numberOf(option, given) : given;
}

/** Throws a UsageError for a change without any value. */
export function needChange(
  body: Readonly<Record<string, unknown>>,
  example: string,
): void {
  if (Object.values(body).every((value) => value === undefined)) {
    throw new UsageError(
      `nothing to change: name a value, for example ${example}`,
    );
  }
}
