import { viewKey, type KeyView } from "../console/pages/nouns/key-view.ts";
import { readKeyUse, type KeyFacts } from "../console/pages/nouns/key-facts.ts";
import { zoneHere } from "./budget-cells.ts";
import { findKey, keyArg } from "./find-key.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import {
  alignColumns,
  harmless,
  paint,
  printAnswer,
  type Cell,
} from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const show = defineVerb({
  name: "keys show",
  description: "Show a key: budgets, limits, latest calls and rejections.",
  example: "hearth keys show anna-laptop",
  args: {
    ...keyArg,
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ key: named, json, url }) => {
    const gateway = findGateway(url);
    const key = await findKey(gateway, named);
    const facts = {
      ...(await readKeyUse(gateway, key.token)),
      key,
      timeZone: zoneHere(),
      now: Date.now(),
    };
    printAnswer(json, asJson(facts), describe(viewKey(facts)).join("\n"));
    return 0;
  },
});

function asJson({ key, usage, calls, refusals }: KeyFacts) {
  return { key, usage, calls, refusals };
}

function describe(view: KeyView): readonly string[] {
  return [
    paint("strong", harmless(view.title)),
    paint("soft", view.facts.join(" · ")),
    "",
    view.everyModel
      ? "Models: all"
      : `Models: ${view.models.map(({ id, note }) => (note === "" ? id : `${id} (${note})`)).join(", ")}`,
    ...table(
      "Budgets",
      view.budgets.map(({ of, name, left, budget }) => [
        { text: `${of} ${name}`, tone: "strong" },
        { text: budget.spent, right: true },
        { text: budget.against },
        { text: `${left} left` },
      ]),
    ),
    ...table(
      "Limits",
      view.limits.map(({ of, what, allowed, left }) => [
        { text: of, tone: "strong" },
        { text: `${allowed} ${what}` },
        { text: `${left} left` },
      ]),
    ),
    ...table(
      "Latest calls",
      view.calls.map(({ at, model, tokens, spend, look, word }) => [
        { text: at, tone: "soft" },
        { text: model, tone: "strong" },
        {
          text: word,
          tone: look === "rest" || look === "none" ? "soft" : look,
        },
        { text: `${tokens} tokens`, right: true },
        { text: spend, right: true },
      ]),
    ),
    "",
    view.refused,
    ...alignColumns(
      view.refusals.map(({ at, why, count, message }) => [
        { text: at, tone: "soft" },
        { text: why, tone: "strong" },
        { text: `${count} ×`, right: true },
        { text: message },
      ]),
    ),
  ];
}

function table(
  heading: string,
  rows: readonly (readonly Cell[])[],
): readonly string[] {
  return rows.length === 0
    ? []
    : ["", paint("soft", heading), ...alignColumns(rows)];
}
