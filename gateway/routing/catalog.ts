import { publishedModels, publisherOf } from "../pricing/price-catalogue.ts";
import type { PriceBook } from "../pricing/prices.ts";
import type { PriceCard } from "../pricing/price-card.ts";
import { faultOfName } from "../ledger/names.ts";
import type { Deployment } from "../config/types.ts";

export interface PricedDeployment extends Deployment {
  /** null: its price is unknown; its calls are billed 0 and reported as unpriced. */
  readonly priceCard: PriceCard | null;
}

/** The deployments behind one alias. */
export interface ModelGroup {
  /** The name that was called: with a wildcard, the name that matched it. */
  readonly alias: string;
  /** The alias as configured, such as `openai/*`; unlike `alias` it has a bounded number of values. */
  readonly configured: string;
  /** The team that alone may use it; null: shared by all. */
  readonly teamId: string | null;
  readonly deployments: readonly PricedDeployment[];
  /** Names under which lists of allowed models may name this and other aliases (`model_info.access_groups`). */
  readonly accessGroups: readonly string[];
  /** Deployments that wait for a variable. */
  readonly waiting: readonly PricedDeployment[];
  /** The variable that all of its deployments require; null: some are usable. */
  readonly pending: string | null;
  /** All of its deployments are switched off. */
  readonly blocked: boolean;
  /** What distinguishes its answers from those of the shared alias with all deployments; "": nothing. */
  readonly variant: string;
}

/** Further names of aliases (`model_group_alias`). */
type FurtherNames = Readonly<
  Record<string, { readonly model: string; readonly hidden: boolean }>
>;

/** The aliases of all callers, or those of one team. */
interface Aliases {
  readonly groups: ReadonlyMap<string, ModelGroup>;
  /** The longest first: `openai/gpt-*` before `openai/*` before `*`. */
  readonly wildcards: readonly ModelGroup[];
}

/** Aliases and their deployments. */
export class Catalog {
  /** Those for all callers, as configured, including wildcards and further names that are not hidden; sorted. */
  readonly groups: readonly ModelGroup[];
  /** All deployments, including pending ones and those of teams. */
  readonly deployments: readonly PricedDeployment[];
  readonly #byId: ReadonlyMap<string, PricedDeployment>;
  readonly #prices: PriceBook;
  readonly #furtherNames: FurtherNames;
  readonly #shared: Aliases;
  readonly #ofTeams: ReadonlyMap<string, Aliases>;

  constructor(
    deployments: readonly Deployment[],
    prices: PriceBook,
    furtherNames: FurtherNames,
  ) {
    this.#prices = prices;
    this.#furtherNames = furtherNames;
    this.deployments = deployments.map((deployment) =>
      this.#priced(deployment, deployment.model),
    );
    this.#byId = new Map(this.deployments.map((one) => [one.id, one]));
    const byTeam = Map.groupBy(this.deployments, ({ teamId }) => teamId);
    this.#shared = aliasesOf(byTeam.get(null) ?? []);
    this.#ofTeams = new Map(
      [...byTeam].flatMap(([teamId, members]) =>
        teamId === null ? [] : [[teamId, aliasesOf(members)]],
      ),
    );
    this.groups = sorted([
      ...this.#shared.groups.values(),
      ...this.#listedNames(),
    ]);
  }

  /** The groups that a team's keys can call, a team's own in place of the shared ones of the same name; sorted. */
  groupsFor(teamId: string | null): readonly ModelGroup[] {
    const own = this.#aliasesOf(teamId)?.groups;
    return own === undefined
      ? this.groups
      : sorted([
          ...this.groups.filter(({ alias }) => !own.has(alias)),
          ...own.values(),
        ]);
  }

  /**
   * The group that a caller means by a name; hidden names and names that match a wildcard are found too. With `teamId` also
   * those of the team, which come first. The name of a model without its provider, such as `gpt-4`, means the provider's
   * wildcard (`openai/*`) if nothing else matches.
   */
  find(name: string, teamId: string | null = null): ModelGroup | null {
    const own = this.#aliasesOf(teamId);
    const further = Object.hasOwn(this.#furtherNames, name)
      ? this.#furtherNames[name]?.model
      : undefined;
    const group =
      own?.groups.get(name) ??
      this.#shared.groups.get(name) ??
      this.#shared.groups.get(further ?? "");
    if (group !== undefined) {
      return group;
    }
    // Names that come through a key's own aliases for models have not been validated.
    if (faultOfName(name) !== null) {
      return null;
    }
    const wildcards = [...(own?.wildcards ?? []), ...this.#shared.wildcards];
    return (
      this.#findByWildcard(wildcards, name) ??
      this.#findByPublisher(wildcards, name)
    );
  }

  /** The models that a wildcard of a known provider admits; none for one that is not listed by name. */
  expand({ alias, teamId, deployments }: ModelGroup): readonly ModelGroup[] {
    const slash = alias.indexOf("/");
    const isOpen = deployments.some(({ model }) => model.endsWith("*"));
    if (slash < 0 || !alias.endsWith("*") || !isOpen) {
      return [];
    }
    const provider = alias.slice(0, slash);
    return publishedModels(provider)
      .map((model) => `${provider}/${model}`)
      .filter((name) => name.startsWith(alias.slice(0, -1)))
      .flatMap((name) => this.find(name, teamId) ?? []);
  }

  #findByPublisher(
    wildcards: readonly ModelGroup[],
    name: string,
  ): ModelGroup | null {
    const isBare = wildcards.length > 0 && !name.includes("/");
    const publisher = isBare ? publisherOf(name) : null;
    return publisher === null
      ? null
      : this.#findByWildcard(wildcards, `${publisher}/${name}`);
  }

  #findByWildcard(
    wildcards: readonly ModelGroup[],
    name: string,
  ): ModelGroup | null {
    const wildcard = wildcards.find(({ alias }) =>
      name.startsWith(alias.slice(0, -1)),
    );
    return wildcard === undefined ? null : this.#matched(wildcard, name);
  }

  #aliasesOf(teamId: string | null): Aliases | undefined {
    return teamId === null ? undefined : this.#ofTeams.get(teamId);
  }

  /** A wildcard's group for a name that matches it. */
  #matched(wildcard: ModelGroup, name: string): ModelGroup {
    const rest = name.slice(wildcard.alias.length - 1);
    const named = (deployment: PricedDeployment) =>
      deployment.model.endsWith("*")
        ? this.#priced(deployment, deployment.model.slice(0, -1) + rest)
        : deployment;
    return {
      ...wildcard,
      alias: name,
      deployments: wildcard.deployments.map(named),
    };
  }

  #listedNames(): readonly ModelGroup[] {
    return Object.entries(this.#furtherNames).flatMap(
      ([name, { model, hidden }]) => {
        const group = this.#shared.groups.get(model);
        return group === undefined || hidden ? [] : [{ ...group, alias: name }];
      },
    );
  }

  /** A deployment of a call in flight, with the address and credentials that are configured for it now. */
  withCurrentAccess(deployment: PricedDeployment): PricedDeployment {
    const current = this.#byId.get(deployment.id);
    if (
      current === undefined ||
      current.provider !== deployment.provider ||
      (current.apiKey === deployment.apiKey &&
        current.headers === deployment.headers)
    ) {
      return deployment;
    }
    const { apiBase, apiKey, apiVersion, headers } = current;
    return { ...deployment, apiBase, apiKey, apiVersion, headers };
  }

  /** A deployment that is not in the catalog, with its price. */
  priced(deployment: Deployment): PricedDeployment {
    return this.#priced(deployment, deployment.model);
  }

  #priced(deployment: Deployment, model: string): PricedDeployment {
    return {
      ...deployment,
      model,
      priceCard: this.#prices.priceFor(deployment, model),
    };
  }
}

function aliasesOf(deployments: readonly PricedDeployment[]): Aliases {
  const groups = new Map(
    [...Map.groupBy(deployments, ({ alias }) => alias)].map(
      ([alias, members]) => [alias, groupOf(alias, members)],
    ),
  );
  return {
    groups,
    wildcards: [...groups.values()]
      .filter(({ alias }) => alias.endsWith("*"))
      .sort((a, b) => b.alias.length - a.alias.length),
  };
}

/** Neither switched off nor waiting for a variable. */
export function isEnabled({
  blocked,
  pending,
}: Pick<Deployment, "blocked" | "pending">): boolean {
  return !blocked && pending === null;
}

export const MODEL_STATUSES = ["ready", "pending", "blocked"] as const;

/** Of a deployment or an alias. */
export function statusOf({
  blocked,
  pending,
}: Pick<Deployment, "blocked" | "pending">): (typeof MODEL_STATUSES)[number] {
  if (blocked) {
    return "blocked";
  }
  return pending === null ? "ready" : "pending";
}

/** The names under which `model_info` lists a model for lists of allowed models. */
export function accessGroupsOf({
  info,
}: Pick<Deployment, "info">): readonly string[] {
  const { access_groups: groups } = info;
  return Array.isArray(groups)
    ? groups.filter((group): group is string => typeof group === "string")
    : [];
}

/** The group of an alias's deployments, which all belong to the same team or to none. */
export function groupOf(
  alias: string,
  members: readonly PricedDeployment[],
): ModelGroup {
  const usable = members.filter(isEnabled);
  const waiting = members.filter(
    ({ blocked, pending }) => !blocked && pending !== null,
  );
  const teamId = members[0]?.teamId ?? null;
  return {
    alias,
    configured: alias,
    teamId,
    deployments: usable,
    accessGroups: [...new Set(members.flatMap(accessGroupsOf))],
    waiting,
    pending: usable.length === 0 ? (waiting[0]?.pending ?? null) : null,
    blocked: members.length > 0 && members.every(({ blocked }) => blocked),
    variant: teamId === null ? "" : `team:${teamId}`,
  };
}

function sorted(groups: readonly ModelGroup[]): readonly ModelGroup[] {
  return groups.toSorted((a, b) => (a.alias < b.alias ? -1 : 1));
}
