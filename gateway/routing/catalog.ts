import {
  publishedModels,
  publisherOf,
  type PriceBook,
  type PriceCard,
} from "../pricing/prices.ts";
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
  readonly deployments: readonly PricedDeployment[];
  /** Names under which lists of allowed models may name this and other aliases (`model_info.access_groups`). */
  readonly accessGroups: readonly string[];
  /** The variable that all of its deployments require; null: some are usable. */
  readonly pending: string | null;
}

/** Further names of aliases (`model_group_alias`). */
type FurtherNames = Readonly<
  Record<string, { readonly model: string; readonly hidden: boolean }>
>;

/** Aliases and their deployments. */
export class Catalog {
  /** As configured, including wildcards and further names that are not hidden; sorted. */
  readonly groups: readonly ModelGroup[];
  /** All deployments, including pending ones. */
  readonly deployments: readonly PricedDeployment[];
  readonly #configured: readonly Deployment[];
  readonly #prices: PriceBook;
  readonly #furtherNames: FurtherNames;
  readonly #byAlias: ReadonlyMap<string, ModelGroup>;
  /** The longest first: `openai/gpt-*` before `openai/*` before `*`. */
  readonly #wildcards: readonly string[];

  constructor(
    deployments: readonly Deployment[],
    prices: PriceBook,
    furtherNames: FurtherNames,
  ) {
    this.#configured = deployments;
    this.#prices = prices;
    this.#furtherNames = furtherNames;
    this.deployments = deployments.map((deployment) =>
      this.#priced(deployment),
    );
    this.#byAlias = new Map(
      [...Map.groupBy(this.deployments, ({ alias }) => alias)].map(
        ([alias, members]) => [alias, groupOf(alias, members)],
      ),
    );
    this.#wildcards = [...this.#byAlias.keys()]
      .filter((alias) => alias.endsWith("*"))
      .sort((a, b) => b.length - a.length);
    this.groups = [...this.#byAlias.values(), ...this.#listedNames()].sort(
      (a, b) => (a.alias < b.alias ? -1 : 1),
    );
  }

  /**
   * The group that a caller means by a name; hidden names and names that match a wildcard are found too. The name of a model
   * without its provider, such as `gpt-4`, means the provider's wildcard (`openai/*`) if nothing else matches.
   */
  find(name: string): ModelGroup | null {
    const further = Object.hasOwn(this.#furtherNames, name)
      ? this.#furtherNames[name]?.model
      : undefined;
    const group = this.#byAlias.get(name) ?? this.#byAlias.get(further ?? "");
    if (group !== undefined) {
      return group;
    }
    // Names that come through a key's own aliases for models have not been validated.
    return faultOfName(name) === null
      ? (this.#findByWildcard(name) ?? this.#findByPublisher(name))
      : null;
  }

  /** The models that a wildcard of a known provider admits; none for one that is not listed by name. */
  expand({ alias, deployments }: ModelGroup): readonly ModelGroup[] {
    const slash = alias.indexOf("/");
    const isOpen = deployments.some(({ model }) => model.endsWith("*"));
    if (slash < 0 || !alias.endsWith("*") || !isOpen) {
      return [];
    }
    const provider = alias.slice(0, slash);
    return publishedModels(provider)
      .map((model) => `${provider}/${model}`)
      .filter((name) => name.startsWith(alias.slice(0, -1)))
      .flatMap((name) => this.find(name) ?? []);
  }

  #findByPublisher(name: string): ModelGroup | null {
    const isBare = this.#wildcards.length > 0 && !name.includes("/");
    const publisher = isBare ? publisherOf(name) : null;
    return publisher === null
      ? null
      : this.#findByWildcard(`${publisher}/${name}`);
  }

  #findByWildcard(name: string): ModelGroup | null {
    const wildcard = this.#wildcards.find((alias) =>
      name.startsWith(alias.slice(0, -1)),
    );
    const matched =
      wildcard === undefined ? undefined : this.#byAlias.get(wildcard);
    if (wildcard === undefined || matched === undefined) {
      return null;
    }
    const rest = name.slice(wildcard.length - 1);
    return {
      ...matched,
      alias: name,
      deployments: this.#configured
        .filter(({ alias, pending }) => alias === wildcard && pending === null)
        .map((deployment) =>
          deployment.model.endsWith("*")
            ? this.#priced(deployment, deployment.model.slice(0, -1) + rest)
            : this.#priced(deployment),
        ),
    };
  }

  #listedNames(): readonly ModelGroup[] {
    return Object.entries(this.#furtherNames).flatMap(
      ([name, { model, hidden }]) => {
        const group = this.#byAlias.get(model);
        return group === undefined || hidden ? [] : [{ ...group, alias: name }];
      },
    );
  }

  #priced(
    deployment: Deployment,
    model: string = deployment.model,
  ): PricedDeployment {
    return {
      ...deployment,
      model,
      priceCard: this.#prices.priceFor(deployment, model),
    };
  }
}

function accessGroupsOf({ info }: Deployment): readonly string[] {
  const { access_groups: groups } = info;
  return Array.isArray(groups)
    ? groups.filter((group): group is string => typeof group === "string")
    : [];
}

function groupOf(
  alias: string,
  members: readonly PricedDeployment[],
): ModelGroup {
  const usable = members.filter((deployment) => deployment.pending === null);
  return {
    alias,
    configured: alias,
    deployments: usable,
    accessGroups: [...new Set(members.flatMap(accessGroupsOf))],
    pending: usable.length === 0 ? (members[0]?.pending ?? null) : null,
  };
}
