import { shellWord } from "../../core/shell.ts";
import { money } from "../../core/words.ts";
import type { Attention, Subject } from "../status.ts";
import type { Context, Module } from "../context.ts";
import type { AdminApi } from "./admin-api.ts";
import { organizationName, teamName, userName } from "./owners.ts";
import { pollGateway } from "./poll-gateway.ts";
import { keyPage, organizationList, teamPage, userPage } from "./rows.ts";

/** Further ones of the same kind are one finding together. */
const MAX_NAMED = 3;
/** The gateway lists at most this many organizations at once, and does not count them. */
const MAX_ORGANIZATIONS = 1000;

/** A payer whose calls are denied by its budget. Dollars. */
interface Payer {
  readonly id: string;
  readonly name: string;
  readonly spend: number;
  readonly budget: number | null;
}

interface Found {
  /** At most MAX_NAMED are needed. */
  readonly payers: readonly Payer[];
  readonly total: number;
}

interface Kind {
  readonly topic: Subject["topic"];
  /** Lists all of the kind. */
  readonly list: string;
  /** Raises the budget of the named one; undefined where no command does. */
  readonly update?: string;
  readonly find: (api: AdminApi) => Promise<Found>;
}

const KINDS: readonly Kind[] = [
  {
    topic: "key",
    list: "hearth keys list",
    update: "hearth keys update",
    find: async (api) => {
      const { keys, total_count: total } = keyPage.parse(
        await api.ask(
          "GET",
          `/key/list?return_full_object=true&state=over_budget&size=${MAX_NAMED}`,
        ),
      );
      const payers = keys.map((key) => ({
        id: key.token,
        name: key.key_alias ?? key.key_name,
        spend: key.spend,
        budget: key.budget_in_force,
      }));
      return { payers, total };
    },
  },
  {
    topic: "user",
    list: "hearth users list",
    update: "hearth users update",
    find: async (api) => {
      const { users, total } = userPage.parse(
        await api.ask(
          "GET",
          `/user/list?state=over_budget&page_size=${MAX_NAMED}`,
        ),
      );
      const payers = users.map((user) => ({
        id: user.user_id,
        name: userName(user),
        spend: user.spend,
        budget: user.budget_in_force,
      }));
      return { payers, total };
    },
  },
  {
    topic: "team",
    list: "hearth teams list",
    update: "hearth teams update",
    find: async (api) => {
      const { teams, total } = teamPage.parse(
        await api.ask(
          "GET",
          `/v2/team/list?state=over_budget&page_size=${MAX_NAMED}`,
        ),
      );
      const payers = teams.map((team) => ({
        id: team.team_id,
        name: teamName(team),
        spend: team.spend,
        budget: team.budget_in_force,
      }));
      return { payers, total };
    },
  },
  {
    topic: "organization",
    list: "hearth budgets",
    find: async (api) => {
      const all = organizationList.parse(
        await api.ask(
          "GET",
          `/organization/list?state=over_budget&page_size=${MAX_ORGANIZATIONS}`,
        ),
      );
      const payers = all.map((each) => ({
        id: each.organization_id,
        name: organizationName(each),
        spend: each.spend,
        budget: each.litellm_budget_table?.max_budget ?? null,
      }));
      return { payers, total: all.length };
    },
  },
];

/** Reports exhausted budgets on the status page, on the host that runs jobs. */
export function openPayersOverBudgetModule(
  context: Pick<Context, "env" | "need">,
): Module {
  return pollGateway(context, "budgets", (api) =>
    openPayersOverBudget(api, Date.now),
  );
}

/**
 * The keys, users, teams and organizations whose calls are denied by their budget. `since` is when each was first found, kept
 * between probes.
 */
export function openPayersOverBudget(
  api: AdminApi,
  now: () => number,
): () => Promise<readonly Attention[]> {
  let known: ReadonlyMap<string, number> = new Map();
  return async () => {
    const at = now();
    const all = await Promise.all(
      KINDS.map(async (kind) => findingsOf(kind, await kind.find(api))),
    );
    const found = all
      .flat()
      .map((each) => ({ ...each, since: known.get(subjectOf(each)) ?? at }));
    known = new Map(found.map((each) => [subjectOf(each), each.since]));
    return found;
  };
}

/** Names need not be unique. */
function subjectOf({ about: { topic, id } }: Pick<Attention, "about">): string {
  return `${topic}:${id ?? ""}`;
}

function findingsOf(
  { topic, list, update }: Kind,
  { payers, total }: Found,
): readonly Omit<Attention, "since">[] {
  const need = (
    name: string,
    id: string | null,
    text: string,
    command: string,
  ) => ({
    name,
    about: { topic, id },
    text,
    level: "warning" as const,
    command,
    output: null,
    tried: [],
    silenced: null,
  });
  const named = payers.slice(0, MAX_NAMED);
  const more = total - named.length;
  return [
    ...named.map(({ id, name, spend, budget }) => {
      const title = `${topic} ${name}`;
      const spent = `${money(spend)} of ${money(budget ?? 0)} spent`;
      return need(
        title,
        id,
        `${title} is over its budget: ${spent}; its calls are denied`,
        update === undefined
          ? list
          : `${update} ${shellWord(name)} --budget DOLLARS`,
      );
    }),
    ...(more <= 0
      ? []
      : [
          {
            ...need(
              `${topic}s`,
              null,
              more === 1
                ? `1 more ${topic} is over its budget`
                : `${more} more ${topic}s are over their budgets`,
              list,
            ),
            count: more,
          },
        ]),
  ];
}
