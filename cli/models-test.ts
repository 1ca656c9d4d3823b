import { z } from "zod";
import { isProviderKey } from "../core/installation.ts";
import { listModels } from "../supervisor/gateway/first-call.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { alignColumns, print, printJson, type Cell } from "./terminal.ts";
import { unknownModel } from "./unknown-models.ts";
import { defineVerb, jsonArg } from "./verb.ts";

const endpoint = z.looseObject({
  model: z.string(),
  api_base: z.string().nullish(),
  error: z.string().optional(),
  waits_for: z.string().optional(),
});

const report = z.looseObject({
  healthy_endpoints: z.array(endpoint),
  unhealthy_endpoints: z.array(endpoint),
  pending_endpoints: z.array(endpoint),
  blocked_endpoints: z.array(endpoint),
});

type Endpoint = z.infer<typeof endpoint>;

export const test = defineVerb({
  name: "models test",
  description:
    "Call each deployment of an alias for one token, or of all; exit code 1 if one fails.",
  example: "hearth models test gpt-mini",
  args: {
    model: {
      type: "positional",
      required: false,
      description: "Alias (default: all)",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ model, json, url }) => {
    const gateway = findGateway(url);
    if (model !== undefined) {
      const known = (await listModels(gateway)).map(({ id }) => id);
      if (!known.includes(model)) {
        throw unknownModel(model, known);
      }
    }
    const query = new URLSearchParams({
      deep: "true",
      ...(model === undefined ? {} : { model }),
    });
    const found = report.parse(await gateway.ask("GET", `/health?${query}`));
    const {
      healthy_endpoints: healthy,
      unhealthy_endpoints: unhealthy,
      pending_endpoints: pending,
      blocked_endpoints: off,
    } = found;
    if (json === true) {
      printJson(found);
    } else {
      const rows = [
        ...healthy.map((each) =>
          rowOf(each, { text: "● answers", tone: "ok" }),
        ),
        ...unhealthy.map((each) =>
          rowOf(each, { text: "✕ fails", tone: "bad" }),
        ),
        ...pending.map((each) =>
          rowOf(each, { text: "○ pending", tone: "soft" }),
        ),
        ...off.map((each) => rowOf(each, { text: "‖ off", tone: "soft" })),
      ];
      alignColumns(rows).forEach(print);
    }
    return unhealthy.length > 0 ? 1 : 0;
  },
});

function adviceFor(variable: string): string {
  return isProviderKey(variable)
    ? `store its key with \`hearth models key ${variable}\``
    : `set ${variable} where the gateway starts`;
}

function rowOf(
  { model, error, waits_for: variable }: Endpoint,
  state: Cell,
): readonly Cell[] {
  return [
    state,
    { text: model, tone: "strong" },
    { text: error ?? (variable === undefined ? "" : adviceFor(variable)) },
  ];
}
