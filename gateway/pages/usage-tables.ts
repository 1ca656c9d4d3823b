import { html, NOTHING, type Html } from "../../core/html.ts";
import { counted, grouped, money } from "../../core/words.ts";
import type { OwnUsage } from "../admin/spend/own-usage-answer.ts";
import { dayBars, meter } from "./bars.ts";
import { dayName, moment } from "./words.ts";

export function figures(usage: OwnUsage): Html {
  const sum = (field: "api_requests" | "total_tokens" | "spend" | "saved") =>
    usage.by_day.reduce((all, day) => all + day[field], 0);
  const period = `${dayName(usage.start_date)} to ${dayName(usage.end_date)}`;
  return html`<dl class="figures">
    <div>
      <dt>Spent</dt>
      <dd>${money(sum("spend"))}<small>${period}</small></dd>
    </div>
    <div>
      <dt>Saved by caches</dt>
      <dd>${money(sum("saved"))}<small>answers and prompts</small></dd>
    </div>
    <div>
      <dt>Calls</dt>
      <dd>
        ${grouped(sum("api_requests"))}<small
          >${counted(sum("total_tokens"), "token")}</small
        >
      </dd>
    </div>
    <div>
      <dt>Rejected</dt>
      <dd>
        ${grouped(usage.refused_last_day)}<small>in the last 24 hours</small>
      </dd>
    </div>
  </dl>`;
}

export const KINDS: Readonly<
  Record<OwnUsage["budgets"][number]["of"], string>
> = {
  key: "Key",
  key_model: "This key with model",
  user: "User",
  team: "Team",
  member: "Member of team",
  organization: "Organization",
  tag: "Tag",
  proxy: "The whole gateway",
};

function payerName({
  of,
  name,
}: {
  of: keyof typeof KINDS;
  name: string;
}): Html {
  return html`${KINDS[of]}${of === "proxy" ? NOTHING : html` <b>${name}</b>`}`;
}

export function budgets({ budgets: all }: OwnUsage, timeZone: string): Html {
  if (all.length === 0) {
    return NOTHING;
  }
  return html`<h2>Budgets</h2>
    ${table(
      "Budgets",
      ["Budget of", "Spent", "Left", "Resets"],
      [1, 2],
      all.map(
        (budget) =>
          html`<tr>
            <th scope="row">${payerName(budget)}</th>
            <td class="num">
              ${money(budget.spend)} of ${money(budget.max_budget)}
              ${meter(
                budget.max_budget === 0 ? 1 : budget.spend / budget.max_budget,
                `${money(budget.spend)} of ${money(budget.max_budget)}`,
              )}
            </td>
            <td class="num">${money(budget.remaining)}</td>
            <td>
              ${
                budget.budget_reset_at === null
                  ? "never"
                  : moment(budget.budget_reset_at, timeZone)
              }
            </td>
          </tr>`,
      ),
    )}`;
}

const LIMITED = {
  requests: "requests per minute",
  tokens: "tokens per minute",
  parallel: "parallel calls",
} as const;

export function limits({ limits: all }: OwnUsage, timeZone: string): Html {
  if (all.length === 0) {
    return NOTHING;
  }
  return html`<h2>Limits</h2>
    ${table(
      "Limits",
      ["Limit of", "Limit", "Left now", "Resets"],
      [1, 2],
      all.map(
        (limit) =>
          html`<tr>
            <th scope="row">${payerName(limit)}</th>
            <td class="num">
              ${grouped(limit.allowed)} ${LIMITED[limit.limit]}
            </td>
            <td class="num">${grouped(limit.remaining)}</td>
            <td>
              ${
                limit.reset_at === null
                  ? limit.limit === "parallel"
                    ? "when calls end"
                    : "unused"
                  : moment(limit.reset_at, timeZone)
              }
            </td>
          </tr>`,
      ),
    )}`;
}

export function byDay(usage: OwnUsage): Html {
  const max = Math.max(0, ...usage.by_day.map(({ spend }) => spend));
  return html`<h2>By day</h2>
    <figure class="card">
      <figcaption>Spend by day, at most ${money(max)}</figcaption>
      ${dayBars(usage.by_day, usage.start_date, usage.end_date)}
      <p class="ends" aria-hidden="true">
        <span>${dayName(usage.start_date)}</span>
        <span>${dayName(usage.end_date)}</span>
      </p>
    </figure>
    <details>
      <summary>Show table</summary>
      ${usageTable(
        "By day",
        "Day",
        usage.by_day.map((day) => ({ ...day, name: dayName(day.date) })),
      )}
    </details>`;
}

export function byModel(usage: OwnUsage): Html {
  return html`<h2>By model</h2>
    ${
      usage.by_model.length === 0
        ? html`<p class="card">No calls in this period.</p>`
        : usageTable(
            "By model",
            "Model",
            usage.by_model.map((row) => ({ ...row, name: row.model })),
          )
    }`;
}

interface Used {
  readonly name: string;
  readonly spend: number;
  readonly api_requests: number;
  readonly failed_requests: number;
  readonly cache_hits: number;
  readonly total_tokens: number;
}

function usageTable(label: string, first: string, rows: readonly Used[]): Html {
  return table(
    label,
    [first, "Spend", "Calls", "Failed", "Cache hits", "Tokens"],
    [1, 2, 3, 4, 5],
    rows.map(
      (row) =>
        html`<tr>
          <th scope="row">${row.name}</th>
          <td class="num">${money(row.spend)}</td>
          <td class="num">${grouped(row.api_requests)}</td>
          <td class="num">${grouped(row.failed_requests)}</td>
          <td class="num">${grouped(row.cache_hits)}</td>
          <td class="num">${grouped(row.total_tokens)}</td>
        </tr>`,
    ),
  );
}

export function refusals({ refusals: all }: OwnUsage, timeZone: string): Html {
  return html`<h2>Latest rejected calls</h2>
    ${
      all.length === 0
        ? html`<p class="card">No rejected calls in the last 30 days.</p>`
        : table(
            "Latest rejected calls",
            ["Time", "Model", "Reason"],
            [],
            all.map(
              (one) =>
                html`<tr>
                  <th scope="row">${moment(one.at, timeZone)}</th>
                  <td>${one.model ?? "–"}</td>
                  <td>${one.message}</td>
                </tr>`,
            ),
          )
    }`;
}

export function table(
  label: string,
  heads: readonly string[],
  numbers: readonly number[],
  rows: readonly Html[],
): Html {
  return html`<div
    class="card scroll"
    tabindex="0"
    role="region"
    aria-label="${label}"
  >
    <table>
      <thead>
        <tr>
          ${heads.map((head, at) =>
            numbers.includes(at)
              ? html`<th scope="col" class="num">${head}</th>`
              : html`<th scope="col">${head}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}
