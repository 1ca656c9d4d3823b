import { readVariable } from "../../core/environment.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import { money } from "../../core/words.ts";
import type { Attention } from "../status.ts";
import type { Context, Module } from "../context.ts";
import { openAdminApi, type AdminApi } from "./admin-api.ts";
import { keyPage, type UsedKeyRow } from "./rows.ts";

const POLL_EVERY_MS = 60_000;
const ANSWER_WITHIN_MS = 10_000;
/** Further keys are only counted. */
const MAX_NAMED = 10;

/** Reports keys with exhausted budgets on the status page, on the host that runs jobs. */
export function openKeysOverBudgetModule({
  env,
  need,
}: Pick<Context, "env" | "need">): Module {
  const address = readVariable("GATEWAY_URL", env)?.replace(/\/+$/, "");
  const idle = { start: () => {}, stop: async () => {} };
  if (
    address === undefined ||
    readVariable("PROXY_MASTER_KEY", env) === undefined ||
    !jobsAreOn(env)
  ) {
    return idle;
  }
  const api = openAdminApi({
    address,
    // Read for each request, because a rotation changes its file.
    credential: () => readVariable("PROXY_MASTER_KEY", env) ?? "",
    timeoutMs: ANSWER_WITHIN_MS,
  });
  const find = openKeysOverBudget(api, Date.now);
  const poll = () =>
    void find().then(
      (found) => need("keys", found),
      // The gateway has its own check; the previous findings are kept.
      () => {},
    );
  let timer: NodeJS.Timeout | undefined;
  return {
    ...idle,
    start: () => {
      poll();
      timer = setInterval(poll, POLL_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
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
        ? [need("keys", `${more} more keys are over their budget`, now())]
        : []),
    ];
  };
}

function attentionOf(
  { key_alias, key_name, spend, budget_in_force }: UsedKeyRow,
  since: number,
): Attention {
  const name = `key ${key_alias ?? key_name}`;
  return need(
    name,
    `${name} is over its budget: ${money(spend)} of ${money(budget_in_force ?? 0)} spent; its calls are denied`,
    since,
  );
}

function need(name: string, text: string, since: number): Attention {
  return {
    name,
    text,
    since,
    level: "warning",
    command: "hearth keys list",
    output: null,
    tried: [],
    silenced: null,
  };
}
