import {
  publicAddress,
  type AdminApi,
} from "../supervisor/gateway/admin-api.ts";
import {
  chatCommand,
  listModels,
  modelToTry,
} from "../supervisor/gateway/first-call.ts";
import { newKeyRow } from "../supervisor/gateway/rows.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { lifetimeIn, limitArgs, limitsIn } from "./limit-options.ts";
import { ownersIn } from "./owner-options.ts";
import { print, printJson } from "./terminal.ts";
import { complainOfUnknownModels } from "./unknown-models.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const create = defineVerb({
  name: "keys new",
  description: "Create a virtual key; it is shown only once.",
  example:
    "hearth keys new --alias anna-laptop --user anna --budget 5 --per 1mo",
  args: {
    alias: {
      type: "string",
      description: "A name for the key",
      valueHint: "name",
    },
    user: {
      type: "string",
      description: "Owner; created if it does not exist",
      valueHint: "name",
    },
    team: {
      type: "string",
      description: "Team that is billed",
      valueHint: "name",
    },
    ...limitArgs,
    expires: {
      type: "string",
      description: "Expires after (default: never)",
      valueHint: "30d",
    },
    "end-user-header": {
      type: "string",
      description: "Header in which the program with this key names its users",
      valueHint: "x-openwebui-user-email",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    if (args.per !== undefined && args.budget === undefined) {
      throw new UsageError(
        "--per requires --budget, for example --budget 5 --per 1mo.",
      );
    }
    const gateway = findGateway(args.url);
    const created = newKeyRow.parse(
      await gateway.ask("POST", "/key/generate", {
        key_alias: args.alias,
        ...(await ownersIn(gateway, args)),
        ...limitsIn(args),
        duration: lifetimeIn(args.expires),
        metadata: endUserHeaderIn(args["end-user-header"]),
      }),
    );
    if (args.json === true) {
      printJson(created);
    } else {
      print((await describeSecret(gateway, created.key)).join("\n"));
    }
    await complainOfUnknownModels(gateway, created);
    return 0;
  },
});

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

function endUserHeaderIn(
  name: string | undefined,
): Readonly<Record<string, string>> | undefined {
  if (name !== undefined && !HEADER_NAME.test(name)) {
    throw new UsageError(
      `--end-user-header must be the name of an HTTP header such as x-openwebui-user-email, not "${name}".`,
    );
  }
  return name === undefined ? undefined : { end_user_header: name };
}

/** A new key with a call that tries it; the only place that prints one. */
export async function describeSecret(
  gateway: AdminApi,
  key: string,
): Promise<readonly string[]> {
  const address = publicAddress(process.env, gateway.address);
  // The key is shown only here, whatever happens.
  const models = await listModels(gateway.as(key)).catch(() => []);
  const model = modelToTry(models);
  return [
    key,
    "",
    ...(model === undefined
      ? [
          "The key is shown only once. No model that it may call is available yet: run `hearth models discover` to find local ones, or `hearth models key openai` to store a provider's key.",
        ]
      : [
          "The key is shown only once. Try it:",
          "",
          "  export HEARTH_KEY=…",
          ...chatCommand(address, "$HEARTH_KEY", model).map(
            (line) => `  ${line}`,
          ),
        ]),
    "",
    `Spend and remaining budget for the key's owner: ${address}/me`,
  ];
}
