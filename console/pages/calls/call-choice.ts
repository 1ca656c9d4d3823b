import { z } from "zod";
import { withQuery } from "../nouns/noun-address.ts";

export const CALLS_PATH = "/spend/calls";

export const STATUSES = ["failure", "interrupted", "success"] as const;

/** Which calls a page lists, as its address has it; empty texts select all. */
export interface CallChoice {
  readonly status: string;
  /** A hash or a name. */
  readonly key: string;
  /** An id, a name or an email address. */
  readonly user: string;
  /** An id or a name. */
  readonly team: string;
  readonly model: string;
  readonly provider: string;
  readonly tag: string;
  /** At least so many dollars. */
  readonly cost: string;
  /** At least so many seconds. */
  readonly latency: string;
  /** A part of the text of the error. */
  readonly error: string;
  /** Days in the operator's time zone. */
  readonly from: string;
  readonly until: string;
  /** The page starts after this place, from the page before. */
  readonly older: string;
  /** Instead, it ends before this one. */
  readonly newer: string;
}

/** What narrows a list down, in the order of the form. */
export const FILTERS = [
  "key",
  "user",
  "team",
  "model",
  "provider",
  "tag",
  "cost",
  "latency",
  "error",
  "from",
  "until",
] as const;
export type Filter = (typeof FILTERS)[number];

const NAMES = ["status", ...FILTERS, "older", "newer"] as const;

const MAX_CHARACTERS = 300;
const text = z.string().trim().max(MAX_CHARACTERS).catch("");
const querySchema = z.object(
  Object.fromEntries(NAMES.map((name) => [name, text])) as Record<
    (typeof NAMES)[number],
    typeof text
  >,
);

/** Parameters that are no text count as missing; the gateway validates the values. */
export function readCallChoice(query: unknown): CallChoice {
  return querySchema.parse(query);
}

/** The address of the calls of a choice. */
export function callsHref(choice: Partial<CallChoice>): string {
  return withQuery(
    CALLS_PATH,
    Object.fromEntries(
      Object.entries(choice).filter(([, value]) => value !== ""),
    ),
  );
}

/** The address of the calls of a choice that is changed: their first page, unless the change names another. */
export function hrefOfChanged(
  choice: CallChoice,
  changed: Partial<CallChoice> = {},
): string {
  return callsHref({ ...choice, older: "", newer: "", ...changed });
}

/** The address of the page of a call. */
export function callHref(id: string, below = ""): string {
  return `${CALLS_PATH}/${encodeURIComponent(id)}${below}`;
}

/** The page without a gateway. */
export const CALLS_AWAY = {
  title: "Calls are unavailable.",
  current: "/spend",
} as const;

const CALLS_ON_PAGE = 50;

/** The parameters of the gateway where they differ from those of the page. */
const GATEWAY_NAMES: Partial<Record<(typeof NAMES)[number], string>> = {
  cost: "min_spend",
  latency: "min_duration_ms",
  from: "start_date",
  until: "end_date",
};

/** The gateway's query of a choice; null for a latency that is no number of seconds. */
export function gatewayQuery(choice: CallChoice): string | null {
  const ms = millisecondsOf(choice.latency);
  if (ms === null) {
    return null;
  }
  const values = { ...choice, latency: ms };
  return withQuery("/spend/calls", {
    ...Object.fromEntries(
      NAMES.flatMap((name) =>
        values[name] === ""
          ? []
          : [[GATEWAY_NAMES[name] ?? name, values[name]]],
      ),
    ),
    page_size: String(CALLS_ON_PAGE),
    with_names: "true",
  });
}

/** The filter of the page that a parameter of the gateway is from; null: none of the form. */
export function filterOf(param: string | null): Filter | "status" | null {
  const found = (["status", ...FILTERS] as const).find(
    (name) => (GATEWAY_NAMES[name] ?? name) === param,
  );
  return found ?? null;
}

function millisecondsOf(seconds: string): string | null {
  if (seconds === "") {
    return "";
  }
  return /^\d{1,6}(\.\d{1,6})?$/.test(seconds)
    ? String(Math.round(Number(seconds) * 1000))
    : null;
}
