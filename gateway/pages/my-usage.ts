import type { OwnUsage } from "../admin/spend/own-usage-answer.ts";
import { dayBars, meter } from "./bars.ts";
import { framed, mark, type Look, type Page } from "./frame.ts";
import { html, NOTHING, type Html } from "../../core/html.ts";
import { MY_USAGE_SCRIPT } from "./my-usage-script.ts";
import { MY_USAGE_STYLE } from "./my-usage-style.ts";
import { snippets } from "./snippets.ts";
import { grouped, money } from "../../core/words.ts";
import { counted, dayName, moment } from "./words.ts";

/** What stands on the page: nothing yet, what a key used, or why it could not be shown. */
export interface MyUsage {
  readonly usage: OwnUsage | null;
  /** In the words of the API. */
  readonly mistake: string | null;
  readonly days: number;
  readonly timeZone: string;
  /** Where this gateway was reached: `http://host:4000`. */
  readonly address: string;
  readonly version: string;
}

export const PERIODS = [7, 30, 90, 365] as const;

/** The page on which the holder of a key sees what it spent and has left. */
export function myUsagePage(view: MyUsage): Page {
  const { look, sentence, more } = verdictOf(view);
  return framed({
    current: "/me",
    title: sentence.replace(/\.$/, ""),
    look,
    style: MY_USAGE_STYLE,
    script: MY_USAGE_SCRIPT,
    version: view.version,
    main: html`<main ${view.usage === null ? EMPTY : NOTHING}>
      <section class="verdict">
        ${mark(look)}
        <h1 tabindex="-1">${sentence}</h1>
        <p>${more}</p>
      </section>
      ${askForm(view)}
      ${view.usage === null ? NOTHING : contents(view, view.usage)}
    </main>`,
  });
}

const EMPTY: Html = { html: "data-empty" };
/** From here on a budget is worth a warning. */
const NEARLY = 0.8;

interface Verdict {
  readonly look: Look;
  readonly sentence: string;
  readonly more: string;
}

function verdictOf({ usage, mistake, timeZone }: MyUsage): Verdict {
  if (mistake !== null) {
    return {
      look: "bad",
      sentence: "This key cannot be shown.",
      more: "Look at the sentence beside the field.",
    };
  }
  if (usage === null) {
    return {
      look: "none",
      sentence: "What has my key used?",
      more: "Paste a virtual key to see what it spent, what is left and what it may do.",
    };
  }
  const who = usage.key?.key_alias ?? usage.key?.key_name ?? "The master key";
  const spent = `${money(usage.spend)} spent, ${money(usage.total_spend)} in its whole life.`;
  const tightest = [...usage.budgets].sort(
    (one, other) => one.remaining - other.remaining,
  )[0];
  if (tightest === undefined) {
    return {
      look: "ok",
      sentence: `${who} has no budget to reach.`,
      more: spent,
    };
  }
  const until =
    tightest.budget_reset_at === null
      ? ""
      : ` until ${moment(tightest.budget_reset_at, timeZone)}`;
  if (tightest.remaining === 0) {
    return {
      look: "bad",
      sentence: `${whose(tightest)} is used up${until}.`,
      more: `${spent} Calls are refused till then, or till whoever runs this gateway raises it.`,
    };
  }
  return {
    look: tightest.spend >= NEARLY * tightest.max_budget ? "warn" : "ok",
    sentence: `${who} has ${money(tightest.remaining)} left${until}.`,
    more: spent,
  };
}

function askForm({ mistake, days }: MyUsage): Html {
  return html`<form class="card ask" method="post" action="/me">
    <label
      >Your key
      <input
        name="key"
        type="password"
        autocomplete="off"
        spellcheck="false"
        required
        maxlength="256"
        ${mistake === null ? NOTHING : INVALID}
      />
    </label>
    <label
      >Days shown
      <select name="days">
        ${PERIODS.map(
          (period) =>
            html`<option
              value="${period}"
              ${period === days ? CHOSEN : NOTHING}
            >
              ${period}
            </option>`,
        )}
      </select>
    </label>
    <button>Show</button>
    <button type="button" class="plain" id="forget" hidden>
      Forget the key
    </button>
    ${
      mistake === null
        ? NOTHING
        : html`<p class="mistake" id="mistake" role="alert">${mistake}</p>`
    }
    <small
      >The key stays in this tab and is forgotten with it. It begins with
      <code>sk-</code>; who runs this gateway has one for you.</small
    >
  </form>`;
}

const INVALID: Html = {
  html: 'aria-invalid="true" aria-describedby="mistake"',
};
const CHOSEN: Html = { html: "selected" };

function contents(view: MyUsage, usage: OwnUsage): Html {
  const ready = usage.models.find(({ status }) => status === "ready");
  return html`${figures(usage)} ${budgets(usage, view.timeZone)}
    ${limits(usage, view.timeZone)} ${byDay(usage)} ${byModel(usage)}
    ${refusals(usage, view.timeZone)}
    <h2>Models</h2>
    ${
      usage.models.length === 0
        ? html`<p class="card">This key may use no model.</p>`
        : html`<ul class="card models">
            ${usage.models.map(
              ({ id, status }) =>
                html`<li>
                  <code>${id}</code>${
                    status === "pending"
                      ? html` <small>not set up yet</small>`
                      : NOTHING
                  }
                </li>`,
            )}
          </ul>`
    }
    <h2>How to call</h2>
    ${snippets(view.address, ready?.id ?? "model")}`;
}

function figures(usage: OwnUsage): Html {
  const sum = (field: "api_requests" | "total_tokens" | "spend") =>
    usage.by_day.reduce((all, day) => all + day[field], 0);
  const period = `${dayName(usage.start_date)} to ${dayName(usage.end_date)}`;
  return html`<dl class="figures">
    <div>
      <dt>Spent</dt>
      <dd>${money(sum("spend"))}<small>${period}</small></dd>
    </div>
    <div>
      <dt>Calls</dt>
      <dd>
        ${grouped(sum("api_requests"))}<small
          >${counted(sum("total_tokens"), "token", "tokens")}</small
        >
      </dd>
    </div>
    <div>
      <dt>Refused</dt>
      <dd>${grouped(usage.refused_last_day)}<small>in the last day</small></dd>
    </div>
  </dl>`;
}

const KINDS: Readonly<Record<OwnUsage["budgets"][number]["of"], string>> = {
  key: "Key",
  key_model: "This key with model",
  user: "User",
  team: "Team",
  member: "Member of the team",
  organization: "Organization",
  tag: "Tag",
  proxy: "The whole gateway",
};

function whose({ of, name }: { of: keyof typeof KINDS; name: string }): string {
  if (of === "proxy") {
    return "The budget of the whole gateway";
  }
  return `The budget of ${KINDS[of].toLowerCase()} ${name}`;
}

function named({ of, name }: { of: keyof typeof KINDS; name: string }): Html {
  return html`${KINDS[of]}${of === "proxy" ? NOTHING : html` <b>${name}</b>`}`;
}

function budgets({ budgets: all }: OwnUsage, timeZone: string): Html {
  if (all.length === 0) {
    return NOTHING;
  }
  return html`<h2>Budgets</h2>
    ${table(
      "Budgets",
      ["Of", "Spent", "Left", "Until"],
      [1, 2],
      all.map(
        (budget) =>
          html`<tr>
            <th scope="row">${named(budget)}</th>
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
                  ? "no reset"
                  : moment(budget.budget_reset_at, timeZone)
              }
            </td>
          </tr>`,
      ),
    )}`;
}

const LIMITED = {
  requests: "requests a minute",
  tokens: "tokens a minute",
  parallel: "calls at once",
} as const;

function limits({ limits: all }: OwnUsage, timeZone: string): Html {
  if (all.length === 0) {
    return NOTHING;
  }
  return html`<h2>Limits</h2>
    ${table(
      "Limits",
      ["Of", "Limit", "Left now", "Resets"],
      [1, 2],
      all.map(
        (limit) =>
          html`<tr>
            <th scope="row">${named(limit)}</th>
            <td class="num">
              ${grouped(limit.allowed)} ${LIMITED[limit.limit]}
            </td>
            <td class="num">${grouped(limit.remaining)}</td>
            <td>
              ${
                limit.reset_at === null
                  ? limit.limit === "parallel"
                    ? "as calls end"
                    : "nothing used"
                  : moment(limit.reset_at, timeZone)
              }
            </td>
          </tr>`,
      ),
    )}`;
}

function byDay(usage: OwnUsage): Html {
  const most = Math.max(0, ...usage.by_day.map(({ spend }) => spend));
  return html`<h2>By day</h2>
    <figure class="card">
      <figcaption>Spend by day, at most ${money(most)}</figcaption>
      ${dayBars(usage.by_day, usage.start_date, usage.end_date)}
      <p class="ends" aria-hidden="true">
        <span>${dayName(usage.start_date)}</span>
        <span>${dayName(usage.end_date)}</span>
      </p>
    </figure>
    <details>
      <summary>The same as a table</summary>
      ${usageTable(
        "By day",
        "Day",
        usage.by_day.map((day) => ({ ...day, name: dayName(day.date) })),
      )}
    </details>`;
}

function byModel(usage: OwnUsage): Html {
  return html`<h2>By model</h2>
    ${
      usage.by_model.length === 0
        ? html`<p class="card">No calls in these days.</p>`
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
    [first, "Spend", "Calls", "Failed", "From the cache", "Tokens"],
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

function refusals({ refusals: all }: OwnUsage, timeZone: string): Html {
  return html`<h2>Last refusals</h2>
    ${
      all.length === 0
        ? html`<p class="card">Nothing was refused in the last 30 days.</p>`
        : table(
            "Last refusals",
            ["When", "Model", "Why"],
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

function table(
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
