import { isProviderKey } from "../core/installation.ts";
import {
  listDeployments,
  type DeploymentRow,
} from "../supervisor/gateway/deployments.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { printTable } from "./job-run.ts";
import { discover } from "./models-discover.ts";
import { key } from "./models-key.ts";
import { test } from "./models-test.ts";
import { print, printJson, type Cell } from "./terminal.ts";
import { defineVerb, jsonArg, type Verb } from "./verb.ts";

const list = defineVerb({
  name: "models list",
  description:
    "List each alias with its deployments, price and context window, and what a pending one needs.",
  example: "hearth models list",
  args: {
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ json, url }) => {
    const data = await listDeployments(findGateway(url));
    if (json === true) {
      printJson({ models: data });
    } else if (data.length === 0) {
      print(
        "No models. Run `hearth models discover` to find local ones, or add some to gateway.local.yaml.",
      );
    } else {
      printTable(
        ["alias", "state", "deployment", "$ per M in", "out", "context"],
        data.map(rowOf),
      );
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

function rowOf({
  model_name,
  model_info: info,
  provider_params: params,
}: DeploymentRow): readonly Cell[] {
  return [
    { text: model_name, tone: "strong" },
    info.waits_for === null
      ? { text: "ready", tone: "ok" }
      : { text: `pending: needs ${info.waits_for}`, tone: "soft" },
    { text: params.model },
    { text: perMillion(info.input_cost_per_token), right: true },
    { text: perMillion(info.output_cost_per_token), right: true },
    {
      text:
        info.max_input_tokens === null
          ? "–"
          : info.max_input_tokens.toLocaleString("en"),
      right: true,
      tone: "soft",
    },
  ];
}

function perMillion(dollars: number | null): string {
  return dollars === null
    ? "–"
    : String(Number((dollars * 1e6).toPrecision(4)));
}

export const models: Verb = {
  name: "models",
  description: "Models of the gateway.",
  example: "hearth models list",
  verbs: {
    list: async () => list,
    test: async () => test,
    key: async () => key,
    discover: async () => discover,
  },
};
