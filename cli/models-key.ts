import { unknownName } from "../core/config/problem.ts";
import { isProviderKey } from "../core/installation.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { listDeployments } from "../supervisor/gateway/deployments.ts";
import { storeForVariable } from "../supervisor/gateway/provider-keys.ts";
import { askForSecret } from "./ask-for-secret.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { readInput } from "./read-input.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, UsageError } from "./verb.ts";

export const key = defineVerb({
  name: "models key",
  description:
    "Store a provider key, encrypted, for the models that wait for it; asks for it, or reads it from a pipe.",
  example: "hearth models key openai",
  args: {
    provider: {
      type: "positional",
      required: true,
      description: "Provider, or variable such as OPENAI_API_KEY",
    },
    json: {
      type: "boolean",
      description: "Print the models it is for as JSON",
    },
    ...gatewayArg,
  },
  run: async ({ provider, json, url }) => {
    const gateway = findGateway(url);
    const variable = await variableOf(gateway, provider);
    const value = process.stdin.isTTY
      ? await askForSecret(`Key for ${variable}`)
      : await readInput(process.stdin);
    if (value.trim() === "") {
      throw new UsageError("no key was given; nothing was stored.");
    }
    const waiting = await modelsThatWaitFor(gateway, variable);
    await storeForVariable(gateway, variable, { api_key: value.trim() });
    const left = await modelsThatWaitFor(gateway, variable);
    const ready = waiting.filter((model) => !left.includes(model));
    printAnswer(
      json,
      { variable, ready },
      `${variable} stored, encrypted. ${effectOn(waiting, ready)}`,
    );
    return 0;
  },
});

function effectOn(
  waiting: readonly string[],
  ready: readonly string[],
): string {
  const [first] = ready;
  if (first !== undefined) {
    return `Ready: ${ready.join(", ")}. Try one with \`hearth models test ${first}\`.`;
  }
  return waiting.length === 0
    ? "No model waited for it."
    : `Still pending: ${waiting.join(", ")}. Run \`hearth models list\` for what they need.`;
}

/** The variable that a provider's models use; a variable stands for itself. */
async function variableOf(gateway: AdminApi, named: string): Promise<string> {
  if (/^[A-Z][A-Z0-9_]*$/.test(named)) {
    return named;
  }
  const data = await listDeployments(gateway);
  // Models of local runners wait for an address.
  const pending = data.filter(
    ({ model_info: { waits_for: variable } }) =>
      variable !== null && isProviderKey(variable),
  );
  const found = pending.find(
    ({ model_info: { litellm_provider: provider } }) => provider === named,
  );
  if (found?.model_info.waits_for != null) {
    return found.model_info.waits_for;
  }
  const providers = [
    ...new Set(data.map(({ model_info: info }) => info.litellm_provider)),
  ];
  throw new UsageError(
    providers.includes(named)
      ? `no model of "${named}" waits for a key. To replace a stored one, name its variable, for example \`hearth models key OPENAI_API_KEY\`.`
      : `${unknownName("provider", named, providers)}. Run \`hearth models list\` for all models.`,
  );
}

async function modelsThatWaitFor(
  gateway: AdminApi,
  variable: string,
): Promise<readonly string[]> {
  const data = await listDeployments(gateway);
  const names = data
    .filter(({ model_info: info }) => info.waits_for === variable)
    .map(({ model_name: name }) => name);
  return [...new Set(names)];
}
