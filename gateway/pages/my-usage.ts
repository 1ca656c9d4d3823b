import { html, NOTHING, type Html } from "../../core/html.ts";
import { grouped, money } from "../../core/words.ts";
import type { OwnCalls } from "../admin/spend/own-calls.ts";
import type { OwnUsage } from "../admin/spend/own-usage-answer.ts";
import type { Look } from "../../core/shapes.ts";
import { callsTable } from "./calls-table.ts";
import { framed, mark, type Page } from "./frame.ts";
import { MY_USAGE_SCRIPT } from "./my-usage-script.ts";
import { MY_USAGE_STYLE } from "./my-usage-style.ts";
import { snippets } from "./snippets.ts";
import {
  budgets,
  byDay,
  byModel,
  figures,
  KINDS,
  limits,
  refusals,
} from "./usage-tables.ts";
import { moment } from "./words.ts";

/** The contents of the page: nothing yet, the usage of a key, or an error. */
export interface MyUsage {
  readonly usage: OwnUsage | null;
  /** The last calls of the key, or a page of earlier ones. */
  readonly calls: OwnCalls | null;
  /** The error message of the API. */
  readonly mistake: string | null;
  readonly days: number;
  readonly timeZone: string;
  /** The address of this gateway as the browser reached it: `http://host:4000`. */
  readonly address: string;
  readonly version: string;
}

export const PERIODS = [7, 30, 90, 365] as const;

/** The page of a key holder: spend and remaining budgets of the key. */
export function myUsagePage(view: MyUsage): Page {
  const { look, sentence, more } = verdictOf(view);
  return framed({
    current: "/me",
    title: sentence.replace(/\.$/, ""),
    look,
    style: MY_USAGE_STYLE,
    script: MY_USAGE_SCRIPT,
    version: view.version,
    main: html`<main
      id="main"
      tabindex="-1"
      ${view.usage === null ? EMPTY : NOTHING}
    >
      <section class="verdict">
        ${mark(look)}
        <h1 tabindex="-1">${sentence}</h1>
        <p>${more}</p>
      </section>
      ${keyForm(view)}
      ${view.usage === null ? NOTHING : contents(view, view.usage)}
    </main>`,
  });
}

const EMPTY: Html = { html: "data-empty" };
/** The share of a budget from which on the page warns. */
const WARN_AT = 0.8;

interface Verdict {
  readonly look: Look;
  readonly sentence: string;
  readonly more: string;
}

function verdictOf({ usage, mistake, timeZone }: MyUsage): Verdict {
  if (mistake !== null) {
    return {
      look: "bad",
      sentence: "The usage of this key is unavailable.",
      more: "The message below the field says why.",
    };
  }
  if (usage === null) {
    return {
      look: "none",
      sentence: "Usage of a key",
      more: "Paste a virtual key to see its spend, its remaining budget and its models.",
    };
  }
  const name = usage.key?.key_alias ?? usage.key?.key_name ?? "The master key";
  const spent = `${money(usage.spend)} spent, ${money(usage.total_spend)} in total.`;
  const tightest = [...usage.budgets].sort(
    (one, other) => one.remaining - other.remaining,
  )[0];
  if (tightest === undefined) {
    return {
      look: "ok",
      sentence: `${name} has no budget.`,
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
      sentence: `${budgetName(tightest)} is used up${until}.`,
      more: `${spent} Calls are denied ${until === "" ? "until" : "until then, unless"} an admin raises the budget.`,
    };
  }
  return {
    look: tightest.spend >= WARN_AT * tightest.max_budget ? "warn" : "ok",
    sentence: `${name} has ${money(tightest.remaining)} left${until}.`,
    more: spent,
  };
}

function keyForm({ mistake, days }: MyUsage): Html {
  return html`<form class="card ask" id="usage" method="post" action="/me">
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
      >Period in days
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
    <button type="button" class="plain" id="forget" hidden>Forget key</button>
    ${
      mistake === null
        ? NOTHING
        : html`<p class="mistake" id="mistake" role="alert">${mistake}</p>`
    }
    <small
      >The key is stored in this tab only, until it is closed. Keys start with
      <code>sk-</code>; ask the admin of this gateway for one.</small
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
    ${view.calls === null ? NOTHING : callsTable(view.calls, view.timeZone)}
    ${refusals(usage, view.timeZone)}
    <h2>Models</h2>
    ${
      usage.models.length === 0
        ? html`<p class="card">This key may not use any model.</p>`
        : modelList(usage.models)
    }
    <h2>How to call</h2>
    ${snippets(view.address, ready?.id ?? "model")}`;
}

/** More models than this are folded. */
const SHOWN_MODELS = 24;

/** Those that answer first. */
function modelList(models: OwnUsage["models"]): Html {
  const isReady = ({ status }: (typeof models)[number]) => status === "ready";
  const sorted = [
    ...models.filter(isReady),
    ...models.filter((model) => !isReady(model)),
  ];
  const more = sorted.slice(SHOWN_MODELS);
  return html`${listOf(sorted.slice(0, SHOWN_MODELS))}
  ${
    more.length === 0
      ? NOTHING
      : html`<details>
          <summary>Show ${grouped(more.length)} more</summary>
          ${listOf(more)}
        </details>`
  }`;
}

function listOf(models: OwnUsage["models"]): Html {
  return html`<ul class="card models">
    ${models.map(
      ({ id, status }) =>
        html`<li>
          <code>${id}</code>${
            status === "ready"
              ? NOTHING
              : html` <small
                  >${
                    status === "blocked" ? "switched off" : "not configured yet"
                  }</small
                >`
          }
        </li>`,
    )}
  </ul>`;
}

function budgetName({
  of,
  name,
}: {
  of: keyof typeof KINDS;
  name: string;
}): string {
  if (of === "proxy") {
    return "The budget of the whole gateway";
  }
  return `The budget of ${KINDS[of].toLowerCase()} ${name}`;
}
