import { z } from "zod";
import type { Look } from "../../../core/shapes.ts";
import { grouped, readable } from "../../../core/words.ts";
import type { Call, CallPage } from "../../../supervisor/gateway/usage.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { KEYS_PATH } from "../nouns/noun-context.ts";
import { viewCall } from "./call-rows.ts";

export const CALLS_PATH = "/spend/calls";

export const STATUSES = ["failure", "interrupted", "success"] as const;

/** Whose calls a page lists; empty texts select all. Days in the operator's time zone. */
export interface CallChoice {
  readonly status: "" | (typeof STATUSES)[number];
  /** A hash. */
  readonly key: string;
  readonly user: string;
  readonly team: string;
  readonly model: string;
  readonly from: string;
  readonly until: string;
  /** The page starts after this call, the last one of the page before: a call id. */
  readonly older: string;
  /** Instead, it ends before this one. */
  readonly newer: string;
}

const text = z.string().max(300).catch("");
const day = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d$/)
  .catch("");
const querySchema = z.object({
  status: z.enum(["", ...STATUSES]).catch(""),
  key: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .catch(""),
  user: text,
  team: text,
  model: text,
  from: day,
  until: day,
  older: text,
  newer: text,
});

/** Invalid parameters take their defaults. */
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

export const CALLS_ON_PAGE = 50;
/** The ledger is asked for a period: before the first call, and after the last. */
export const EVER = { from: "2000-01-01", until: "2100-01-01" } as const;

/**
 * The gateway's query of a choice. Pages continue from a call instead of skipping those before, which would take longer from
 * page to page; newer calls come oldest first.
 */
export function ledgerQuery(choice: CallChoice): string {
  const { status, key, user, team, model, from, until, older, newer } = choice;
  const named = {
    status_filter: status,
    api_key: key,
    user_id: user,
    team_id: team,
    model_group: model,
    cursor: older || newer,
    sort_order: older === "" && newer !== "" ? "asc" : "",
  };
  return withQuery("/spend/logs/v2", {
    ...Object.fromEntries(
      Object.entries(named).filter(([, value]) => value !== ""),
    ),
    start_date: from || EVER.from,
    end_date: until || EVER.until,
    page_size: String(CALLS_ON_PAGE),
  });
}

const CALLS: Readonly<Record<CallChoice["status"], string>> = {
  "": "call",
  success: "answered call",
  failure: "failed call",
  interrupted: "interrupted call",
};

/** A page of calls, newest first. `names` are those of the key, user and team of the choice. */
export function viewCalls(
  choice: CallChoice,
  page: CallPage,
  names: readonly string[],
  timeZone: string,
) {
  const { total, total_is_capped: isCapped } = page;
  const hrefOf = (changed: Partial<CallChoice>) =>
    callsHref({ ...choice, older: "", newer: "", ...changed });
  const { calls, hasNewer, hasOlder } = inOrder(choice, page);
  return {
    ...headingOf(choice, total, isCapped),
    subline: [
      ...names,
      ...(choice.model === "" ? [] : [`model ${readable(choice.model)}`]),
      periodWords(choice),
    ].join(" · "),
    statuses: (["", ...STATUSES] as const).map((status) => ({
      name: status === "" ? "all" : CALLS[status].replace(" call", ""),
      href: hrefOf({ status }),
      current: status === choice.status,
    })),
    calls: calls.map((call) => ({
      ...viewCall(call, timeZone),
      key: keyOf(call),
    })),
    newer: hasNewer ? hrefOf({ newer: calls[0]?.request_id ?? "" }) : null,
    older: hasOlder ? hrefOf({ older: calls.at(-1)?.request_id ?? "" }) : null,
  };
}

/** The calls of a page, newest first, and whether there are others before and after them. */
function inOrder(
  { older, newer }: CallChoice,
  { data, next_cursor: next }: CallPage,
) {
  return older === "" && newer !== ""
    ? { calls: data.toReversed(), hasNewer: next !== null, hasOlder: true }
    : { calls: data, hasNewer: older !== "", hasOlder: next !== null };
}

function headingOf(
  { status }: CallChoice,
  total: number,
  isCapped: boolean,
): { readonly title: string; readonly look: Look } {
  const calls = CALLS[status];
  if (total === 0) {
    return { title: `No ${calls}s.`, look: "none" };
  }
  return {
    title: `${isCapped ? "More than " : ""}${grouped(total)} ${calls}${total === 1 ? "" : "s"}.`,
    look: status === "" || status === "success" ? "ok" : "warn",
  };
}

function periodWords({ from, until }: CallChoice): string {
  if (from === "" && until === "") {
    return "all time";
  }
  if (from === until) {
    return from;
  }
  return [
    ...(from === "" ? [] : [`from ${from}`]),
    ...(until === "" ? [] : [`to ${until}`]),
  ].join(" ");
}

function keyOf({ api_key: token, metadata }: Call) {
  const alias = metadata.user_api_key_alias;
  const isKey = token !== null && /^[0-9a-f]{64}$/.test(token);
  return {
    name: readable(alias ?? (isKey ? `${token.slice(0, 8)}…` : "master key")),
    href: isKey && alias !== null ? `${KEYS_PATH}/${token}` : null,
  };
}
