import { html, NOTHING, type Html } from "../../core/html.ts";
import {
  grouped,
  latency,
  money,
  readable,
  shortened,
} from "../../core/words.ts";
import type { OwnCalls } from "../admin/spend/own-calls.ts";
import { table } from "./usage-tables.ts";
import { moment } from "./words.ts";

type Call = OwnCalls["data"][number];

/** The last calls of a key; the buttons send the form `usage` again, with the place where the list continues. */
export function callsTable(calls: OwnCalls, timeZone: string): Html {
  const { data, older, newer, searched_back_to: searched } = calls;
  return html`<h2 id="calls" tabindex="-1">Calls</h2>
    ${
      data.length === 0
        ? html`<p class="card">
            ${
              searched === null
                ? "No calls."
                : `No calls since ${moment(searched, timeZone)}.`
            }
          </p>`
        : table(
            "Calls",
            ["Time", "Model", "Result", "Latency", "Tokens", "Cost"],
            [3, 4, 5],
            data.map((call) => row(call, timeZone)),
          )
    }
    ${
      older === null && newer === null
        ? NOTHING
        : html`<p class="acts">
            ${pageButton("newer", newer, "Newer calls")}
            ${pageButton("older", older, "Older calls")}
          </p>`
    }`;
}

function pageButton(
  name: "older" | "newer",
  place: string | null,
  label: string,
): Html {
  return place === null
    ? NOTHING
    : html`<button class="plain" form="usage" name="${name}" value="${place}">
        ${label}
      </button>`;
}

function row(call: Call, timeZone: string): Html {
  const error = errorOf(call);
  const isCall = call.payer === null;
  return html`<tr>
    <th scope="row">${moment(call.endTime, timeZone)}</th>
    <td>${isCall ? readable(call.model_group ?? "–") : "–"}</td>
    <td>
      ${resultOf(call)}${error === "" ? NOTHING : html`<br /><small>${error}</small>`}
    </td>
    <td class="num">${isCall ? latency(call.request_duration_ms) : ""}</td>
    <td class="num">${grouped(call.total_tokens)}</td>
    <td class="num">${money(call.spend)}</td>
  </tr>`;
}

function resultOf({ payer, status, cache_hit: hit }: Call): string {
  if (payer !== null) {
    return "manual correction or import";
  }
  switch (status) {
    case "success":
      return hit === "True" ? "answered from the cache" : "answered";
    case "failure":
      return "failed";
    case "interrupted":
      return "interrupted";
  }
}

const MAX_CHARACTERS = 300;

function errorOf({ metadata }: Call): string {
  const information = metadata.error_information as {
    readonly error_message?: string;
  } | null;
  return shortened(readable(information?.error_message ?? ""), MAX_CHARACTERS);
}
