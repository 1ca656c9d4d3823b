import { shellWord } from "../core/shell.ts";
import {
  listDeployments,
  type DeploymentRow,
} from "../supervisor/gateway/deployments.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { printAnswer } from "./terminal.ts";
import { unknownModel } from "./unknown-models.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const off = switchVerb(
  "off",
  "Switch an alias off: its calls get 403 until it is switched on. An id switches off one deployment.",
);
export const on = switchVerb(
  "on",
  "Switch an alias, or one deployment, on again.",
);

function switchVerb(to: "on" | "off", description: string) {
  return defineVerb({
    name: `models ${to}`,
    description,
    example: `hearth models ${to} gpt-mini`,
    args: {
      model: {
        type: "positional",
        required: true,
        description: "Alias, or id of a deployment",
      },
      ...jsonArg,
      ...gatewayArg,
    },
    run: async ({ model, json, url }) => {
      const gateway = findGateway(url);
      const found = deploymentsNamed(await listDeployments(gateway), model);
      const path = to === "off" ? "/model/block" : "/model/unblock";
      for (const { model_info: info } of found) {
        await gateway.ask("POST", path, { model_id: info.id });
      }
      printAnswer(
        json,
        { model, off: to === "off", deployments: found.length },
        to === "off"
          ? `${model} is switched off. Switch it on with \`hearth models on ${shellWord(model)}\`.`
          : `${model} is switched on.`,
      );
      return 0;
    },
  });
}

function deploymentsNamed(
  all: readonly DeploymentRow[],
  named: string,
): readonly DeploymentRow[] {
  const found = all.filter(
    ({ model_name: alias, model_info: { id } }) =>
      alias === named || id === named,
  );
  if (found.length > 0) {
    return found;
  }
  const aliases = [...new Set(all.map(({ model_name: alias }) => alias))];
  throw unknownModel(named, aliases);
}
