import { money } from "../core/words.ts";
import { Failure } from "../core/failure.ts";
import {
  publicAddress,
  type AdminApi,
} from "../supervisor/gateway/admin-api.ts";
import {
  chatCommand,
  listModels,
  modelToTry,
} from "../supervisor/gateway/first-call.ts";
import {
  keyPage,
  keyRow,
  newKeyRow,
  type UsedKeyRow,
} from "../supervisor/gateway/rows.ts";
import { KEY_STATE_WORDS } from "../console/pages/nouns/key-states.ts";
import { signs } from "../core/shapes.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { alignColumns, print, type Cell } from "./terminal.ts";
import { defineVerb, UsageError, type Verb } from "./verb.ts";

const json = { type: "boolean", description: "Print it as JSON" } as const;

const create = defineVerb({
  name: "keys new",
  description: "Create a virtual key; it is shown only once.",
  example: "hearth keys new --user anna --models gpt-mini --budget 5 --per 1mo",
  args: {
    alias: {
      type: "string",
      description: "A name for the key",
      valueHint: "name",
    },
    user: {
      type: "string",
      description: "Owner; created if it does not exist",
      valueHint: "id",
    },
    team: {
      type: "string",
      description: "Team that is billed",
      valueHint: "id",
    },
    models: {
      type: "string",
      description: "Allowed models, comma-separated (default: all)",
      valueHint: "alias,alias",
    },
    budget: {
      type: "string",
      description: "Budget",
      valueHint: "dollars",
    },
    per: {
      type: "string",
      description: "Budget reset interval (default: never)",
      valueHint: "1d|1w|1mo",
    },
    rpm: {
      type: "string",
      description: "Requests per minute",
      valueHint: "number",
    },
    tpm: {
      type: "string",
      description: "Tokens per minute",
      valueHint: "number",
    },
    expires: {
      type: "string",
      description: "Expires after (default: never)",
      valueHint: "30d",
    },
    json,
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
        user_id: args.user,
        team_id: args.team,
        models: args.models?.split(",").map((model) => model.trim()),
        max_budget: numberOf("--budget", args.budget),
        budget_duration: args.per,
        rpm_limit: numberOf("--rpm", args.rpm),
        tpm_limit: numberOf("--tpm", args.tpm),
        duration: args.expires,
      }),
    );
    if (args.json === true) {
      print(JSON.stringify(created, null, 2));
      return 0;
    }
    const address = publicAddress(process.env, gateway.address);
    const model = modelToTry(await listModels(gateway.as(created.key)));
    print(
      [
        created.key,
        "",
        ...(model === undefined
          ? [
              "The key is shown only once. No model that it may call is available yet: run `hearth models discover` to find local ones.",
            ]
          : [
              "The key is shown only once. Try it:",
              "",
              "  export KEY=…",
              ...chatCommand(address, "$KEY", model).map((line) => `  ${line}`),
            ]),
        "",
        `Spend and remaining budget for the key's owner: ${address}/me`,
      ].join("\n"),
    );
    return 0;
  },
});

function numberOf(
  option: string,
  text: string | undefined,
): number | undefined {
  if (text === undefined) {
    return undefined;
  }
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) {
    throw new UsageError(`${option} must be a number, not "${text}".`);
  }
  return number;
}

const list = defineVerb({
  name: "keys list",
  description: "List keys with their spend and budgets.",
  example: "hearth keys list --user anna",
  args: {
    user: {
      type: "string",
      description: "Only keys of this user",
      valueHint: "id",
    },
    team: {
      type: "string",
      description: "Only keys of this team",
      valueHint: "id",
    },
    most: {
      type: "string",
      default: "100",
      description: "Maximum number of keys, newest first",
      valueHint: "number",
    },
    json,
    ...gatewayArg,
  },
  run: async ({ user, team, most, json: asJson, url }) => {
    const max = numberOf("--most", most) ?? 100;
    if (!Number.isInteger(max) || max < 1) {
      throw new UsageError(`--most must be at least 1, not "${most}".`);
    }
    const { keys, total } = await readKeys(findGateway(url), max, {
      ...(user === undefined ? {} : { user_id: user }),
      ...(team === undefined ? {} : { team_id: team }),
    });
    if (asJson === true) {
      print(JSON.stringify({ keys, total }, null, 2));
    } else {
      print(renderKeys(keys, total));
    }
    return 0;
  },
});

const PAGE_SIZE = 100;
async function readKeys(
  gateway: AdminApi,
  most: number,
  filter: Readonly<Record<string, string>>,
): Promise<{ readonly keys: readonly UsedKeyRow[]; readonly total: number }> {
  const keys: UsedKeyRow[] = [];
  for (let page = 1; ; page += 1) {
    const query = new URLSearchParams({
      ...filter,
      page: String(page),
      size: String(PAGE_SIZE),
      return_full_object: "true",
    });
    const answer = keyPage.parse(
      await gateway.ask("GET", `/key/list?${query.toString()}`),
    );
    keys.push(...answer.keys);
    if (keys.length >= most || page >= answer.total_pages) {
      return { keys: keys.slice(0, most), total: answer.total_count };
    }
  }
}

function renderKeys(keys: readonly UsedKeyRow[], total: number): string {
  if (keys.length === 0) {
    return "No keys found. Create one, for example with `hearth keys new --user anna --budget 5 --per 1mo`.";
  }
  const head = ["state", "alias", "key", "owner", "spent", "resets"].map(
    (text): Cell => ({ text, tone: "soft" }),
  );
  const lines = alignColumns([head, ...keys.map(rowOf)]);
  const more = total - keys.length;
  return [
    ...lines,
    ...(more > 0 ? ["", `${more} more; show all with --most ${total}.`] : []),
  ].join("\n");
}

function rowOf(one: UsedKeyRow): readonly Cell[] {
  const spent =
    one.budget_in_force === null
      ? money(one.spend)
      : `${money(one.spend)} of ${money(one.budget_in_force)}`;
  return [
    stateOf(one),
    { text: one.key_alias ?? "–", tone: "strong" },
    { text: one.key_name },
    { text: one.team_id ?? one.user_id ?? "–" },
    { text: spent, right: true },
    { text: one.budget_reset_at?.slice(0, 10) ?? "–", tone: "soft" },
  ];
}

function stateOf({ state }: UsedKeyRow): Cell {
  const { look, word } = KEY_STATE_WORDS[state];
  return {
    text: `${signs[look]} ${word}`,
    tone: look === "rest" || look === "none" ? "soft" : look,
  };
}

function setBlocked(verb: "block" | "unblock") {
  return defineVerb({
    name: `keys ${verb}`,
    description:
      verb === "block"
        ? "Deny a key's calls on every gateway."
        : "Unblock a key.",
    example: `hearth keys ${verb} anna-laptop`,
    args: {
      key: {
        type: "positional",
        required: true,
        description: "Alias or hash of the key",
      },
      json,
      ...gatewayArg,
    },
    run: async ({ key: named, json: asJson, url }) => {
      if (named.startsWith("sk-")) {
        throw new UsageError(
          "a key must not be a command-line argument, which other users can read: use its alias or hash (`hearth keys list --json` shows both).",
        );
      }
      const gateway = findGateway(url);
      const hash = /^[0-9a-f]{64}$/.test(named)
        ? named
        : await hashOfAlias(gateway, named);
      const changed = keyRow.parse(
        await gateway.ask("POST", `/key/${verb}`, { key: hash }),
      );
      if (asJson === true) {
        print(JSON.stringify(changed, null, 2));
      } else {
        print(
          verb === "block"
            ? `Key "${named}" blocked; calls are denied within a second. Undo with \`hearth keys unblock ${named}\`.`
            : `Key "${named}" unblocked.`,
        );
      }
      return 0;
    },
  });
}

async function hashOfAlias(gateway: AdminApi, alias: string): Promise<string> {
  const query = new URLSearchParams({
    key_alias: alias,
    return_full_object: "true",
  });
  const { keys } = keyPage.parse(
    await gateway.ask("GET", `/key/list?${query.toString()}`),
  );
  const [found] = keys;
  if (found === undefined) {
    throw new Failure(
      `key with alias "${alias}" not found. Run \`hearth keys list\` for all keys.`,
    );
  }
  return found.token;
}

export const keys: Verb = {
  name: "keys",
  description: "Virtual keys of the gateway.",
  example: "hearth keys new --help",
  verbs: {
    new: async () => create,
    list: async () => list,
    block: async () => setBlocked("block"),
    unblock: async () => setBlocked("unblock"),
  },
};
