import { waitingVariables } from "../console/pages/models/stored-values.ts";
import { isProviderKey } from "../core/installation.ts";
import { latency, shortened } from "../core/words.ts";
import {
  perMillion,
  stateOfDeployment,
} from "../supervisor/gateway/deployment-states.ts";
import {
  listDeployments,
  type DeploymentRow,
} from "../supervisor/gateway/deployments.ts";
import {
  readStatistics,
  type DeploymentStatistics,
} from "../supervisor/gateway/model-statistics.ts";
import { zoneHere } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { discover } from "./models-discover.ts";
import { key } from "./models-key.ts";
import { off, on } from "./models-switch.ts";
import { test } from "./models-test.ts";
import { print, printJson, printTable, type Cell } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const list = defineVerb({
  name: "models list",
  description:
    "List each alias with its deployments, their states, latency and tokens per second of the last 24 hours, price and context window.",
  example: "hearth models list",
  args: {
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ json, url }) => {
    const gateway = findGateway(url);
    const [data, statistics] = await Promise.all([
      listDeployments(gateway),
      readStatistics(gateway),
    ]);
    const of = ({ model_info: { id } }: DeploymentRow) => statistics.get(id);
    if (json === true) {
      printJson({
        models: data.map((each) => ({
          ...each,
          last_24_hours: of(each) ?? null,
        })),
      });
    } else if (data.length === 0) {
      print(
        "No models. Run `hearth models discover` to find local ones, or add some to gateway.local.yaml.",
      );
    } else {
      printTable(
        [
          "alias",
          "state",
          "deployment",
          "p50",
          "p95",
          "tokens/s",
          "$ per M in",
          "out",
          "context",
        ],
        data.map((each) => rowOf(each, of(each))),
        ["context", "tokens/s", "p50"],
      );
      const missing = waitingVariables(data);
      if (missing.length > 0) {
        print("");
        printTable(
          ["missing", "pending models"],
          missing.map(({ variable, models: names }) => [
            { text: variable, tone: "strong" },
            { text: names.join(", ") },
          ]),
        );
      }
      const waiting = data.find(
        ({ model_info: { waits_for: variable } }) =>
          variable !== null && isProviderKey(variable),
      );
      if (waiting !== undefined) {
        print(
          `\nStore the key of a provider with \`hearth models key ${waiting.model_info.litellm_provider}\`.`,
        );
      }
    }
    return 0;
  },
});

function rowOf(
  deployment: DeploymentRow,
  statistics: DeploymentStatistics | undefined,
): readonly Cell[] {
  const { model_name, model_info: info, provider_params: params } = deployment;
  const { state, look, word, why } = stateOfDeployment(
    deployment,
    statistics,
    zoneHere(),
  );
  const number = (text: string | null): Cell => ({
    text: text ?? "–",
    right: true,
  });
  return [
    { text: model_name, tone: "strong" },
    {
      text:
        // What pending ones need is listed below the table, where a narrow terminal does not cut it.
        why === "" || state === "pending"
          ? word
          : `${word}: ${shortened(why.replaceAll(/\s+/g, " "), MAX_ERROR)}`,
      tone: look === "rest" || look === "none" ? "soft" : look,
    },
    { text: params.model },
    number(durationOf(statistics?.latency_p50_ms)),
    number(durationOf(statistics?.latency_p95_ms)),
    number(statistics?.tokens_per_second?.toLocaleString("en") ?? null),
    number(perMillion(info.input_cost_per_token)),
    number(perMillion(info.output_cost_per_token)),
    {
      ...number(info.max_input_tokens?.toLocaleString("en") ?? null),
      tone: "soft",
    },
  ];
}

function durationOf(ms: number | null | undefined): string | null {
  return ms == null ? null : latency(ms);
}

/** In characters: a terminal has no room for a whole page of a provider's error. */
const MAX_ERROR = 80;

export const models: Verb = {
  name: "models",
  description: "Models of the gateway.",
  example: "hearth models list",
  verbs: {
    list: async () => list,
    test: async () => test,
    key: async () => key,
    discover: async () => discover,
    off: async () => off,
    on: async () => on,
  },
};
