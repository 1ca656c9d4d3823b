import type { PriceBook, PriceCard } from "../pricing/prices.ts";
import { faultOfName } from "../ledger/names.ts";
import type { Deployment } from "../config/types.ts";

export interface PricedDeployment extends Deployment {
  /** null: nobody knows what it costs; its calls are billed 0 and shown as unpriced. */
  readonly priceCard: PriceCard | null;
}

/** What one alias stands for. */
export interface ModelGroup {
  /** The name that was called: with a wildcard alias, the name that matched it. */
  readonly alias: string;
  /** The alias as it is configured, such as `openai/*`: there are not more of these than somebody wrote down. */
  readonly configured: string;
  readonly deployments: readonly PricedDeployment[];
  /** The variable that every one of its deployments waits for. */
  readonly pending: string | null;
}

export interface Catalog {
  find(name: string): ModelGroup | null;
  /** As written in the configuration, wildcards too, sorted. */
  readonly groups: readonly ModelGroup[];
  /** Every deployment, pending ones too. */
  readonly deployments: readonly PricedDeployment[];
}

/** Aliases and their deployments; `hidden` further names are found but not listed. */
export function createCatalog(
  deployments: readonly Deployment[],
  prices: PriceBook,
  furtherNames: Readonly<
    Record<string, { readonly model: string; readonly hidden: boolean }>
  >,
): Catalog {
  const groups = new Map<string, ModelGroup>();
  const priced = (deployment: Deployment, model = deployment.model) => ({
    ...deployment,
    model,
    priceCard: prices.priceFor(deployment, model),
  });
  for (const [alias, members] of Map.groupBy(
    deployments,
    (deployment) => deployment.alias,
  )) {
    groups.set(
      alias,
      groupOf(
        alias,
        members.map((deployment) => priced(deployment)),
      ),
    );
  }
  // The longest prefix wins: `openai/gpt-*` before `openai/*` before `*`.
  const wildcards = [...groups.keys()]
    .filter((alias) => alias.endsWith("*"))
    .sort((a, b) => b.length - a.length);
  const listed = [...groups.values()];
  for (const [name, { model, hidden }] of Object.entries(furtherNames)) {
    const group = groups.get(model);
    if (group !== undefined && !hidden) {
      listed.push({ ...group, alias: name });
    }
  }

  function find(name: string): ModelGroup | null {
    const further = Object.hasOwn(furtherNames, name)
      ? furtherNames[name]?.model
      : undefined;
    const group = groups.get(name) ?? groups.get(further ?? "");
    if (group !== undefined) {
      return group;
    }
    // A key's own names for models may lead here with what nobody has looked at.
    if (faultOfName(name) !== null) {
      return null;
    }
    const wildcard = wildcards.find((alias) =>
      name.startsWith(alias.slice(0, -1)),
    );
    const matched = wildcard === undefined ? undefined : groups.get(wildcard);
    if (wildcard === undefined || matched === undefined) {
      return null;
    }
    const rest = name.slice(wildcard.length - 1);
    return {
      ...matched,
      alias: name,
      deployments: deployments
        .filter(({ alias, pending }) => alias === wildcard && pending === null)
        .map((deployment) =>
          deployment.model.endsWith("*")
            ? priced(deployment, deployment.model.slice(0, -1) + rest)
            : priced(deployment),
        ),
    };
  }

  return {
    find,
    groups: listed.sort((a, b) => (a.alias < b.alias ? -1 : 1)),
    deployments: deployments.map((deployment) => priced(deployment)),
  };
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
    pending: usable.length === 0 ? (members[0]?.pending ?? null) : null,
  };
}
