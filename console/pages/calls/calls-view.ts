import type { Look } from "../../../core/shapes.ts";
import {
  countTitle,
  momentFrom,
  readable,
  secondsFrom,
} from "../../../core/words.ts";
import type { Call } from "../../../supervisor/gateway/usage.ts";
import type { CallList } from "../../../supervisor/gateway/calls.ts";
import { shortKeyHash } from "../../../supervisor/gateway/key-hash.ts";
import { withTyped, type Field } from "../field.ts";
import { KEYS_PATH } from "../nouns/noun-context.ts";
import {
  callsHref,
  hrefOfChanged,
  FILTERS,
  STATUSES,
  type CallChoice,
  type Filter,
} from "./call-choice.ts";
import { keyHashOf, viewCall } from "./call-rows.ts";

const CALLS: Readonly<Record<string, string>> = {
  "": "call",
  success: "answered call",
  failure: "failed call",
  interrupted: "interrupted call",
};

/** Names of what the choice has by id, where they are known. */
export type ChosenNames = Readonly<Partial<Record<Filter, string>>>;

/** A page of calls, newest first. */
export function viewCalls(
  choice: CallChoice,
  page: CallList,
  names: ChosenNames,
  timeZone: string,
  now: number,
) {
  const { data, older, newer, searched_back_to: searched } = page;
  return {
    ...headingOf(choice, page, timeZone, now),
    ...viewControls(choice, names, page),
    calls: data.map((call) => ({
      ...viewCall(call, timeZone, now, secondsFrom),
      key: keyOf(call),
    })),
    isEmpty: data.length === 0,
    isFiltered: isFiltered(choice),
    searched:
      searched === null
        ? null
        : `Searched back to ${momentFrom(now, Date.parse(searched), timeZone)}. A search reads only part of the ledger at a time, so that every page is quick.`,
    newer: newer === null ? null : hrefOfChanged(choice, { newer }),
    older: older === null ? null : hrefOfChanged(choice, { older }),
    olderLabel: searched === null ? "Older calls" : "Search further back",
  };
}

/** What is shown above the calls, also without any. `mistakes`: what is wrong, by filter. */
export function viewControls(
  choice: CallChoice,
  names: ChosenNames,
  { models, providers }: Pick<CallList, "models" | "providers">,
  mistakes: Readonly<Record<string, string>> = {},
) {
  return {
    status: choice.status,
    statuses: ["", ...STATUSES].map((status) => ({
      name: status === "" ? "all" : (CALLS[status]?.replace(" call", "") ?? ""),
      href: hrefOfChanged(choice, { status }),
      current: status === choice.status,
    })),
    statusMistake: mistakes["status"] ?? null,
    fields: withTyped(fieldsOf(models, providers), { ...choice }, mistakes),
    isOpen: Object.keys(mistakes).length > 0,
    chosen: FILTERS.flatMap((filter) =>
      choice[filter] === ""
        ? []
        : [
            {
              words: wordsOf(filter, names[filter] ?? choice[filter]),
              without: hrefOfChanged(choice, { [filter]: "" }),
            },
          ],
    ),
    clear: callsHref({ status: choice.status }),
  };
}

function fieldsOf(
  models: readonly string[],
  providers: readonly string[],
): readonly Field[] {
  const text = { kind: "text" } as const;
  return [
    { name: "key", label: "Key", note: "Name.", ...text },
    { name: "user", label: "User", note: "Name, ID or email.", ...text },
    { name: "team", label: "Team", note: "Name or ID.", ...text },
    { name: "model", label: "Model", ...text, among: models },
    { name: "provider", label: "Provider", ...text, among: providers },
    { name: "tag", label: "Tag", ...text },
    {
      name: "cost",
      label: "Cost at least",
      note: "In dollars, such as 0.05.",
      ...text,
    },
    {
      name: "latency",
      label: "Latency at least",
      note: "In seconds, such as 2.5.",
      ...text,
    },
    { name: "error", label: "Error contains", ...text },
    { name: "from", label: "From", kind: "day" },
    { name: "until", label: "To", kind: "day" },
  ];
}

/** The label of a filter in an error, and in words. */
export const FILTER_LABELS: Readonly<Record<Filter | "status", string>> = {
  status: "Status",
  ...(Object.fromEntries(
    fieldsOf([], []).map(({ name, label }) => [name, label]),
  ) as Record<Filter, string>),
};

function wordsOf(filter: Filter, value: string): string {
  const shown = readable(value);
  switch (filter) {
    case "cost":
      return `at least $ ${shown}`;
    case "latency":
      return `at least ${shown} s`;
    case "error":
      return `error contains “${shown}”`;
    case "until":
      return `to ${shown}`;
    case "key":
    case "user":
    case "team":
    case "model":
    case "provider":
    case "tag":
    case "from":
      return `${filter} ${shown}`;
  }
}

function isFiltered(choice: CallChoice): boolean {
  return (
    choice.status !== "" || FILTERS.some((filter) => choice[filter] !== "")
  );
}

function headingOf(
  choice: CallChoice,
  page: CallList,
  timeZone: string,
  now: number,
): { readonly title: string; readonly look: Look } {
  const { status } = choice;
  const calls = CALLS[status] ?? "call";
  const shown = page.data.length;
  const look: Look =
    shown === 0
      ? "none"
      : status === "" || status === "success"
        ? "ok"
        : "warn";
  if (choice.older !== "" || choice.newer !== "") {
    return {
      title: shown === 0 ? `No ${calls}s on this page.` : `Earlier ${calls}s.`,
      look,
    };
  }
  const { total, total_is_capped: isCapped, searched_back_to: searched } = page;
  if (total !== null) {
    return {
      title: `${isCapped ? "More than " : ""}${countTitle(total, calls)}.`,
      look,
    };
  }
  return {
    title:
      searched === null
        ? `More than ${countTitle(shown, calls)}.`
        : `${countTitle(shown, calls)} since ${momentFrom(now, Date.parse(searched), timeZone)}.`,
    look,
  };
}

function keyOf(call: Call) {
  const alias = call.metadata.user_api_key_alias;
  const hash = keyHashOf(call);
  const unnamed = call.payer === null ? "master key" : "";
  return {
    name: readable(alias ?? (hash === null ? unnamed : shortKeyHash(hash))),
    href: hash === null || alias === null ? null : `${KEYS_PATH}/${hash}`,
  };
}
