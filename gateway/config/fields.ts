import { z } from "zod";
import { faultOfName, MAX_NAME_BYTES } from "../ledger/names.ts";
import { withoutWord } from "../ledger/budget-durations.ts";
import { parseConfigDuration } from "./config-duration.ts";
import { faultOfPattern } from "../routing/caller-pattern.ts";
import { isPrice, MAX_PRICE } from "../pricing/price-card.ts";
import { mistakeInCron } from "../../core/schedule.ts";
import { isRecord } from "../../core/json.ts";
import type { ClientParam, Fallbacks, Preload } from "./types.ts";

/** A field with a message that says what is allowed; the rejected value is added where its line is known. */
function field<T>(allowed: string, read: (raw: unknown) => T | undefined) {
  return z.unknown().transform((raw, context): T => {
    const value = read(raw);
    if (value !== undefined) {
      return value;
    }
    context.addIssue({ code: "custom", message: `must be ${allowed}` });
    return z.NEVER;
  });
}

// Variables give numbers and booleans as text.
function numeric(raw: unknown): number {
  if (typeof raw === "number") {
    return raw;
  }
  return typeof raw === "string" && raw.trim() !== "" ? Number(raw) : NaN;
}

export const whole = (min: number, max?: number) =>
  field(
    max === undefined
      ? `a whole number from ${min}`
      : `a whole number from ${min} to ${max}`,
    (raw) => {
      const value = numeric(raw);
      return Number.isSafeInteger(value) &&
        value >= min &&
        value <= (max ?? value)
        ? value
        : undefined;
    },
  ).optional();

export const dollars = () =>
  field("dollars, a number from 0", (raw) => {
    const value = numeric(raw);
    return Number.isFinite(value) && value >= 0 ? value : undefined;
  }).optional();

/** Of a token, an image, a second, … */
export const price = () =>
  field(`dollars, a number from 0 to ${MAX_PRICE}`, (raw) => {
    const value = numeric(raw);
    return isPrice(value) ? value : undefined;
  }).optional();

export const share = () =>
  field("a number from 0 to 1", (raw) => {
    const value = numeric(raw);
    return value >= 0 && value <= 1 ? value : undefined;
  }).optional();

export const weight = () =>
  field("a number above 0", (raw) => {
    const value = numeric(raw);
    return Number.isFinite(value) && value > 0 ? value : undefined;
  }).optional();

// yes, no, on and off are booleans to the YAML 1.1 readers that LiteLLM's files are written for.
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["no", false],
  ["off", false],
]);

export const flag = () =>
  field("true or false", (raw) =>
    typeof raw === "boolean" ? raw : BOOLEANS.get(String(raw).toLowerCase()),
  ).optional();

/** `slots`: a number of calls, or `auto`. */
export const slots = () =>
  field<number | "auto">(
    "a whole number from 1 to 10000, or auto (as many as the runner reports)",
    (raw) => {
      const value = numeric(raw);
      return raw === "auto"
        ? raw
        : Number.isSafeInteger(value) && value >= 1 && value <= 10_000
          ? value
          : undefined;
    },
  ).optional();

/** `preload`: true (at the start), a time, a schedule, or a list of these. */
export const preload = () =>
  field<Preload>(
    'true (at the start), a time such as "07:30", a schedule of five fields such as "30 7 * * 1-5", or a list of these',
    (raw) => {
      const list = (Array.isArray(raw) ? raw : [raw]).map(preloadTime);
      return list.every((time) => time !== undefined)
        ? {
            atStart: list.includes(true),
            crons: list.filter((time) => typeof time === "string"),
          }
        : undefined;
    },
  ).optional();

/** A schedule, or whether the model is loaded at the start; undefined for anything else. */
function preloadTime(raw: unknown): string | boolean | undefined {
  const given = String(raw).trim();
  const time = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(given);
  if (time !== null) {
    return `${Number(time[2])} ${Number(time[1])} * * *`;
  }
  return (
    BOOLEANS.get(given.toLowerCase()) ??
    (mistakeInCron(given) === undefined ? given : undefined)
  );
}

export const text = () =>
  field("text", (raw) =>
    typeof raw === "string"
      ? raw
      : typeof raw === "number" || typeof raw === "boolean"
        ? String(raw)
        : undefined,
  ).optional();

export const name = () =>
  field(`a name of at most ${MAX_NAME_BYTES} bytes`, (raw) => {
    const given = typeof raw === "number" ? String(raw) : raw;
    if (typeof given !== "string" || given.trim() === "") {
      return undefined;
    }
    return faultOfName(given) === null ? given.trim() : undefined;
  });

/** `spellings` maps other names for a choice to the choice. */
export const choice = <T extends string>(
  choices: readonly T[],
  spellings: Readonly<Record<string, T>> = {},
) =>
  field(`one of ${choices.join(", ")}`, (raw) => {
    const given = String(raw);
    return (
      choices.find((one) => one === given) ??
      (Object.hasOwn(spellings, given) ? spellings[given] : undefined)
    );
  }).optional();

export const duration = () =>
  field(
    "a duration such as 30 (seconds), 250ms, 5s, 2m, 1h or 7d",
    parseConfigDuration,
  ).optional();

/** A duration that may also be `never` (null). */
export const durationOrNever = () =>
  field("a duration such as 90d or 13mo, or never", (raw) =>
    raw === "never" || raw === "-1" || raw === -1
      ? null
      : parseConfigDuration(raw),
  ).optional();

export const texts = () =>
  field("a list of names", (raw) => {
    const list =
      typeof raw === "string" ? raw.split(",").map((one) => one.trim()) : raw;
    return Array.isArray(list) && list.every((one) => typeof one === "string")
      ? (list as readonly string[])
      : undefined;
  }).optional();

/** Regular expressions for a header. */
export const headerPatterns = () =>
  field(
    "a list of at most 10 regular expressions such as ^User-Agent: claude-code",
    (raw) => {
      const list = typeof raw === "string" ? [raw] : raw;
      const valid =
        Array.isArray(list) &&
        list.length <= 10 &&
        list.every((one) => typeof one === "string" && isPattern(one));
      return valid ? (list as readonly string[]) : undefined;
    },
  ).optional();

function isPattern(text: string): boolean {
  return faultOfPattern(text) === null;
}

export const webAddress = () =>
  field("an address such as http://192.168.1.10:11434", (raw) =>
    typeof raw === "string" && isWebAddress(raw) ? raw : undefined,
  ).optional();

/** Of a server that is called. The login in an address would not be sent, and be shown wherever the address is. */
export const serverAddress = () =>
  webAddress().refine(
    (address) => typeof address !== "string" || !hasLogin(address),
    "must be an address without user and password: set `headers` to {authorization: Basic …}",
  );

function hasLogin(address: string): boolean {
  const { username, password } = new URL(address);
  return username + password !== "";
}

export function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

export const timezone = () =>
  field("a time zone such as UTC or Europe/Berlin", (raw) => {
    try {
      return new Intl.DateTimeFormat("en", {
        timeZone: String(raw),
      }).resolvedOptions().timeZone;
    } catch {
      return undefined;
    }
  }).optional();

/** `budget_duration`: a duration that budget windows support. */
export const budgetDuration = () =>
  field("a duration such as 30s, 15m, 24h, 30d, 1w or 1mo", (raw) => {
    const text = typeof raw === "string" ? withoutWord(raw) : "";
    return /^[1-9]\d*(s|m|h|d|w|mo)$/.test(text) ? text : undefined;
  }).optional();

export const record = (what: string) =>
  field(what, (raw) => (isRecord(raw) ? raw : undefined)).optional();

/** What each call says itself. */
const OF_CALLS = ["model", "messages", "input", "prompt", "stream"];

/** Parameters that the provider gets with each call. */
export const extraBody = () =>
  field(
    `a mapping of parameters other than ${OF_CALLS.join(", ")}, which each call has itself`,
    (raw) =>
      isRecord(raw) && !OF_CALLS.some((name) => name in raw) ? raw : undefined,
  ).optional();

/** `[{alias: [aliases]}, …]` as LiteLLM writes it, or one mapping of the same. */
export const fallbacks = () =>
  field(
    "names of models by alias, such as - alias: [other, another]",
    (raw) => {
      const maps = Array.isArray(raw) ? raw : [raw];
      const result = new Map<string, readonly string[]>();
      for (const map of maps) {
        if (!isRecord(map)) {
          return undefined;
        }
        for (const [alias, targets] of Object.entries(map)) {
          const list = typeof targets === "string" ? [targets] : targets;
          if (
            !Array.isArray(list) ||
            !list.every((one) => typeof one === "string")
          ) {
            return undefined;
          }
          result.set(alias, [...(result.get(alias) ?? []), ...list]);
        }
      }
      return Object.fromEntries(result) as Fallbacks;
    },
  ).optional();

/** What callers may send instead of a deployment's own: names, or `api_base: PATTERN`. */
export const clientParams = () =>
  field("a list such as [api_key, api_base: PATTERN of RE2]", (raw) => {
    const params = Array.isArray(raw) ? raw.map(clientParam) : [];
    return Array.isArray(raw) && params.every((param) => param !== null)
      ? params
      : undefined;
  }).optional();

function clientParam(raw: unknown): ClientParam | null {
  if (raw === "api_key" || raw === "api_base" || raw === "base_url") {
    return { name: raw === "api_key" ? raw : "api_base", pattern: null };
  }
  const pattern = isRecord(raw) ? raw["api_base"] : undefined;
  return typeof pattern === "string" && isPattern(pattern)
    ? { name: "api_base", pattern }
    : null;
}

/** `{name: alias}` or `{name: {model: alias, hidden: true}}`. */
export const groupAliases = () =>
  field("a mapping such as name: alias", (raw) => {
    if (!isRecord(raw)) {
      return undefined;
    }
    const result: Record<string, { model: string; hidden: boolean }> = {};
    for (const [alias, target] of Object.entries(raw)) {
      const model = isRecord(target) ? target["model"] : target;
      if (typeof model !== "string") {
        return undefined;
      }
      result[alias] = {
        model,
        hidden: isRecord(target) && target["hidden"] === true,
      };
    }
    return result;
  }).optional();
