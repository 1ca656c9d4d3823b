import { money } from "../../core/words.ts";
import type { Attention } from "../status.ts";
import type { Context, Module } from "../context.ts";
import type { AdminApi } from "./admin-api.ts";
import { pollGateway } from "./poll-gateway.ts";
import { keyPage, type UsedKeyRow } from "./rows.ts";

/** Further keys are only counted. */
const MAX_NAMED = 10;

/** Reports keys with exhausted budgets on the status page, on the host that runs jobs. */
export function openKeysOverBudgetModule(
  context: Pick<Context, "env" | "need">,
): Module {
  return pollGateway(context, "keys", (api) =>
    openKeysOverBudget(api, Date.now),
  );
}

/** The keys whose calls are denied by their budget. `since` is when each was first found, kept between probes. */
export function openKeysOverBudget(
  api: AdminApi,
  now: () => number,
): () => Promise<readonly Attention[]> {
  let known: ReadonlyMap<string, number> = new Map();
  return async () => {
    const { keys, total_count } = keyPage.parse(
      await api.ask(
        "GET",
        `/key/list?return_full_object=true&state=over_budget&size=${MAX_NAMED}`,
      ),
    );
    known = new Map(
      keys.map(({ token }) => [token, known.get(token) ?? now()]),
    );
    const more = total_count - keys.length;
    return [
      ...keys.map((key) => attentionOf(key, known.get(key.token) ?? now())),
      ...(more > 0
        ? [need("keys", null, `${more} more keys are over their budget`, now())]
        : []),
    ];
  };
}

function attentionOf(
  { token, key_alias, key_name, spend, budget_in_force }: UsedKeyRow,
  since: number,
): Attention {
  const name = `key ${key_alias ?? key_name}`;
  return need(
    name,
    token,
    `${name} is over its budget: ${money(spend)} of ${money(budget_in_force ?? 0)} spent; its calls are denied`,
    since,
  );
}

function need(
  name: string,
  token: string | null,
  text: string,
  since: number,
): Attention {
  return {
    name,
    about: { topic: "key", id: token },
    text,
    since,
    level: "warning",
    command: "hearth keys list",
    output: null,
    tried: [],
    silenced: null,
  };
}
