import { shellWord } from "../core/shell.ts";
import { keyRow, newKeyRow } from "../supervisor/gateway/rows.ts";
import { keyTitle } from "../console/pages/nouns/key-list.ts";
import { askForName, yesArg } from "./ask-for-name.ts";
import { findKey, keyArg } from "./find-key.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { describeSecret } from "./keys-new.ts";
import {
  lifetimeIn,
  limitArgs,
  limitsIn,
  needChange,
} from "./limit-options.ts";
import { ownersIn } from "./owner-options.ts";
import { sendChange } from "./send-change.ts";
import { print, printAnswer, printJson } from "./terminal.ts";
import { complainOfUnknownModels } from "./unknown-models.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const update = defineVerb({
  name: "keys update",
  description: "Change a key's name, owner or limits.",
  example: "hearth keys update anna-laptop --budget 10 --per 1mo",
  args: {
    ...keyArg,
    alias: { type: "string", description: "New name", valueHint: "name" },
    user: { type: "string", description: "New owner", valueHint: "name" },
    team: {
      type: "string",
      description: "Team that is billed from now on",
      valueHint: "name",
    },
    ...limitArgs,
    expires: {
      type: "string",
      description: "Expires after this time from now, or never",
      valueHint: "30d",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const changes: Readonly<Record<string, unknown>> = {
      key_alias: args.alias,
      ...(await ownersIn(gateway, args)),
      ...limitsIn(args),
      duration: lifetimeIn(args.expires),
    };
    needChange(changes, update.example);
    const { token } = await findKey(gateway, args.key);
    const changed = keyRow.parse(
      await gateway.ask("POST", "/key/update", { key: token, ...changes }),
    );
    printAnswer(
      args.json,
      changed,
      `Key "${keyTitle(changed)}" updated. Changes take effect within a second.`,
    );
    await complainOfUnknownModels(gateway, changes);
    return 0;
  },
});

export const rotate = defineVerb({
  name: "keys rotate",
  description:
    "Give a key a new secret, which is shown only once; limits, budget and history stay.",
  example: "hearth keys rotate anna-laptop --grace 24h",
  args: {
    ...keyArg,
    grace: {
      type: "string",
      description: "How long the old secret stays valid (default: not at all)",
      valueHint: "24h",
    },
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ key, grace, json: asJson, url }) => {
    const gateway = findGateway(url);
    const { token } = await findKey(gateway, key);
    const rotated = newKeyRow.parse(
      await gateway.ask("POST", "/key/regenerate", {
        key: token,
        grace_period: grace,
      }),
    );
    if (asJson === true) {
      printJson(rotated);
      return 0;
    }
    print((await describeSecret(gateway, rotated.key)).join("\n"));
    print(
      grace === undefined
        ? "The old secret is no longer valid."
        : `The old secret stays valid for ${grace} and shares the key's budget.`,
    );
    return 0;
  },
});

export const remove = defineVerb({
  name: "keys delete",
  description: "Delete a key; its spend stays in the ledger.",
  example: "hearth keys delete anna-laptop",
  args: { ...keyArg, ...yesArg, ...jsonArg, ...gatewayArg },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const key = await findKey(gateway, args.key);
    const name = keyTitle(key);
    if (args.yes !== true) {
      await askForName(
        `key "${name}"`,
        name,
        "All its calls are denied from now on. This cannot be undone.",
      );
    }
    return sendChange(
      gateway,
      args,
      "/key/delete",
      { keys: [key.token] },
      `Key "${name}" deleted. Its spend stays in the ledger.`,
    );
  },
});

export const block = setBlocked("block");
export const unblock = setBlocked("unblock");

function setBlocked(verb: "block" | "unblock") {
  return defineVerb({
    name: `keys ${verb}`,
    description:
      verb === "block"
        ? "Deny a key's calls on every gateway."
        : "Unblock a key.",
    example: `hearth keys ${verb} anna-laptop`,
    args: { ...keyArg, ...jsonArg, ...gatewayArg },
    run: async ({ key: named, json, url }) => {
      const gateway = findGateway(url);
      const { token } = await findKey(gateway, named);
      const changed = keyRow.parse(
        await gateway.ask("POST", `/key/${verb}`, { key: token }),
      );
      printAnswer(
        json,
        changed,
        verb === "block"
          ? `Key "${named}" blocked; calls are denied within a second. Undo with \`hearth keys unblock ${shellWord(named)}\`.`
          : `Key "${named}" unblocked.`,
      );
      return 0;
    },
  });
}
