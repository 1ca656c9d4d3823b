import { inWords } from "../core/duration.ts";
import {
  isUndrained,
  listInstances,
  type GatewayInstance,
} from "../supervisor/gateway/instances.ts";
import { money } from "../core/words.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { printAnswer, printList, type Cell } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const list = defineVerb({
  name: "instances list",
  description:
    "List the gateways that share limits in Redis, with their spend that is not yet in the ledger.",
  example: "hearth instances list",
  args: { ...jsonArg, ...gatewayArg },
  run: async ({ json, url }) => {
    const all = await listInstances(findGateway(url));
    printList(json, all, {
      empty: "No instances: without Redis, a gateway runs alone.",
      headings: [
        "instance",
        "state",
        "undrained calls",
        "pending spend",
        "budgets",
      ],
      rowOf,
    });
    return all.some(isUndrained) ? 1 : 0;
  },
});

function rowOf(one: GatewayInstance): readonly Cell[] {
  return [
    { text: one.instance, tone: "strong" },
    stateOf(one),
    { text: String(one.undrained_calls), right: true },
    { text: money(one.pending_spend), right: true },
    { text: String(one.pending_budgets), right: true },
  ];
}

function stateOf(one: GatewayInstance): Cell {
  if (one.running) {
    return { text: "running", tone: "ok" };
  }
  const silent =
    one.silent_seconds === null
      ? "an unknown time"
      : inWords(one.silent_seconds * 1_000);
  return { text: `stopped for ${silent}`, tone: "warn" };
}

const forget = defineVerb({
  name: "instances forget",
  description:
    "Remove a gateway with a lost journal from the list, and its pending spend from all budgets.",
  example: "hearth instances forget 0b9c1f7e-5a1d-4b52-9d1c-6f0d0c3a8e11",
  args: {
    instance: {
      type: "positional",
      required: true,
      description: "An instance from `hearth instances list`",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ instance, json, url }) => {
    const done = await findGateway(url).ask("POST", "/instances/forget", {
      instance,
    });
    printAnswer(
      json,
      done,
      `Instance ${instance} forgotten; its pending spend no longer counts.`,
    );
    return 0;
  },
});

export const instances: Verb = {
  name: "instances",
  description: "Gateways that share limits in Redis.",
  example: "hearth instances list",
  verbs: { list: async () => list, forget: async () => forget },
};
