import { DAY_MS, inWords } from "../../../core/duration.ts";
import { noteOfStatus } from "../../../supervisor/gateway/first-call.ts";
import {
  MASTER_USER,
  ownerNames,
  userName,
} from "../../../supervisor/gateway/owners.ts";
import { addDays } from "../../../supervisor/reports/period.ts";
import type { KeyUsage, Refusals } from "../../../supervisor/gateway/usage.ts";
import { drawColumns } from "../../../core/charts.ts";
import { latencyOf, viewCall } from "../calls/call-rows.ts";
import { callsHref, type CallChoice } from "../calls/call-choice.ts";
import { isNearlyUsed, viewBudget } from "./budget.ts";
import type { Look } from "../../../core/shapes.ts";
import {
  ago,
  axisMoney,
  counted,
  daysFrom,
  grouped,
  moment,
  momentFrom,
  money,
  percent,
  readable,
} from "../../../core/words.ts";
import type { KeyFacts } from "./key-facts.ts";
import { keyState, keyTitle, lastUseOf } from "./key-list.ts";

/** Of many; all of them are in the table of calls. */
const SHOWN_CALLS = 8;
/** The others are folded. */
const SHOWN_MODELS = 12;

/** What templates/key.eta shows. */
export type KeyView = ReturnType<typeof viewKey>;

export function viewKey(facts: KeyFacts) {
  const { key, usage, refusals, timeZone } = facts;
  return {
    ...verdictOf(facts),
    facts: factsOf(facts),
    budgets: viewBudgets(facts),
    limits: viewLimits(facts),
    everyModel: key.models.length === 0,
    models: usage.models.map(({ id, status }) => ({
      id,
      note: noteOfStatus(status),
    })),
    shownModels: SHOWN_MODELS,
    ...viewSpend(facts),
    figures: viewFigures(facts),
    refused: refusalsSentence(refusals),
    refusals: viewRefusals(facts),
    calls: facts.calls
      .slice(0, SHOWN_CALLS)
      .map((call) => viewCall(call, timeZone, facts.now)),
    allCalls: callsHref({ key: key.token }),
  };
}

/** How the calls go. */
function viewFigures({ key, usage, refusals, calls }: KeyFacts) {
  const sum = (field: "api_requests" | "failed_requests" | "saved") =>
    usage.by_model.reduce((all, each) => all + each[field], 0);
  const [all, failed] = [sum("api_requests"), sum("failed_requests")];
  const latency = latencyOf(calls);
  return [
    {
      name: "Calls",
      value: grouped(all),
      note: "last 30 days",
      href:
        all === 0
          ? null
          : callsHref({ key: key.token, from: usage.start_date }),
    },
    {
      name: "Failed",
      value: grouped(failed),
      note: all === 0 ? "" : `${percent(failed / all)} of calls`,
      href:
        failed === 0
          ? null
          : callsHref({
              status: "failure",
              key: key.token,
              from: usage.start_date,
            }),
    },
    {
      name: "Saved by caches",
      value: money(sum("saved")),
      note: "answers and prompts",
      href: null,
    },
    {
      name: "Latency",
      value: latency?.median ?? "–",
      note: latency?.note ?? "no answers yet",
      href: null,
    },
    {
      name: "Rejected",
      value: grouped(refusals.total),
      note: "last 24 hours",
      href: null,
    },
  ];
}

/** A row for each reason, with its latest rejection, the most frequent first. */
function viewRefusals({
  key,
  usage,
  refusals: { counts, refusals },
  timeZone,
}: KeyFacts) {
  // Rejected calls are not in the ledger: those of the key around them are, by the ledger's days.
  const calls = callsHref({
    key: key.token,
    from: addDays(usage.end_date, -1),
  });
  return counts.map(({ type, count, last_at }) => {
    const latest = refusals.find((each) => each.type === type);
    return {
      calls,
      why: type.replaceAll("_", " "),
      count: grouped(count),
      at: moment(Date.parse(last_at), timeZone),
      model: latest?.model ?? "",
      message: latest?.message ?? "",
    };
  });
}

function verdictOf({ key, timeZone, now }: KeyFacts): {
  readonly title: string;
  readonly look: Look;
} {
  const name = keyTitle(key);
  const { spend, budget_in_force: budget, budget_reset_at: until } = key;
  switch (key.state) {
    case "blocked":
      return { title: `${name} is blocked.`, look: "rest" };
    case "expired":
      return {
        title: `${name} expired ${ago(Date.parse(key.expires ?? ""), now)}.`,
        look: "bad",
      };
    case "over_budget":
      return {
        title: `${name} is over budget${until === null ? "" : ` until ${momentFrom(now, Date.parse(until), timeZone)}`}.`,
        look: "warn",
      };
    case "active":
      return {
        title:
          budget === null
            ? `${name} is active, without a budget.`
            : `${name} has ${money(budget - spend)} of ${money(budget)} left.`,
        look: isNearlyUsed(key) ? "warn" : "ok",
      };
  }
}

function factsOf({ key, usage, timeZone, now }: KeyFacts): readonly string[] {
  return [
    ...(key.key_alias === null ? [] : [key.key_name]),
    `owner: ${ownerNames(key)}`,
    `created ${momentFrom(now, Date.parse(key.created_at), timeZone)}${creatorOf(key)}`,
    ...(key.state === "active" && key.expires !== null
      ? [keyState(key, timeZone, now).word]
      : []),
    key.last_used_at === null
      ? "never used"
      : `last used ${lastUseOf(key, now)}`,
    `${money(usage.total_spend)} in total`,
  ];
}

function creatorOf({ created_by: by }: KeyFacts["key"]): string {
  if (by === null) {
    return "";
  }
  return by === MASTER_USER ? " with the master key" : ` by ${readable(by)}`;
}

function viewBudgets({ key, usage, timeZone, now }: KeyFacts) {
  return usage.budgets.map((each) => ({
    of: payerWords[each.of] ?? each.of,
    name: payerName(key, each),
    left: money(each.remaining),
    budget: viewBudget(
      {
        spend: each.spend,
        budget_in_force: each.max_budget,
        budget_reset_at: each.budget_reset_at,
      },
      timeZone,
      now,
    ),
  }));
}

function viewLimits({ key, usage }: KeyFacts) {
  return usage.limits.map((each) => ({
    of: `${payerWords[each.of] ?? each.of} ${payerName(key, each)}`,
    what: limitWords[each.limit],
    allowed: grouped(each.allowed),
    left: grouped(each.remaining),
  }));
}

/** The user by name, too: ids of users who signed in say nothing. */
function payerName(
  key: KeyFacts["key"],
  { of, name }: { readonly of: string; readonly name: string },
): string {
  if (of === "key") {
    return keyTitle(key);
  }
  const { user_id, user_alias, user_email } = key;
  return of === "user" && user_id === name
    ? userName({ user_id, user_alias, user_email })
    : readable(name);
}

function viewSpend({ key, usage }: KeyFacts) {
  const of = (choice: Partial<CallChoice>) =>
    callsHref({ key: key.token, ...choice });
  return {
    chart: drawSpend(usage),
    days: usage.by_day
      .filter(({ spend }) => spend > 0)
      .map(({ date, spend }) => ({
        day: date,
        spend: money(spend),
        href: of({ from: date, until: date }),
      })),
    byModel: usage.by_model.map((each) => ({
      model: each.model === "" ? "unknown" : readable(each.model),
      href:
        each.model === ""
          ? null
          : of({ model: each.model, from: usage.start_date }),
      failedHref:
        each.model === ""
          ? null
          : of({
              model: each.model,
              status: "failure",
              from: usage.start_date,
            }),
      calls: grouped(each.api_requests),
      failed: each.failed_requests === 0 ? "" : grouped(each.failed_requests),
      tokens: grouped(each.total_tokens),
      spend: money(each.spend),
    })),
  };
}

function refusalsSentence({ total }: Refusals): string {
  return total === 0
    ? "No rejected calls in the last 24 hours."
    : `${counted(total, "rejected call")} in the last 24 hours.`;
}

const payerWords: Readonly<Record<string, string>> = {
  key: "key",
  key_model: "model",
  user: "user",
  team: "team",
  member: "member",
  organization: "organization",
  tag: "tag",
  proxy: "gateway",
};

const limitWords = {
  requests: "requests per minute",
  tokens: "tokens per minute",
  parallel: "parallel requests",
} as const;

/** Dollars per day, days without calls included; null where nothing was spent. */
function drawSpend({ by_day, start_date, end_date }: KeyUsage): string | null {
  const spends = new Map(by_day.map(({ date, spend }) => [date, spend]));
  if ([...spends.values()].every((spend) => spend <= 0)) {
    return null;
  }
  const days = daysFrom(start_date, end_date);
  return drawColumns(
    {
      labels: days.map((day) => String(Number(day.slice(8)))),
      series: [
        {
          name: "spend",
          colour: "one",
          values: days.map((day) => spends.get(day) ?? 0),
        },
      ],
      label: axisMoney,
    },
    `dollars per day, last ${inWords(days.length * DAY_MS).replace(" d", " days")}`,
  );
}
