import { z } from "zod";
import { administersTeam } from "../access/actor.ts";
import { mayUse, usableModels } from "../access/models.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { ratesAt, type Price, type PriceCard } from "../pricing/price-card.ts";
import { contextWindowOf, largest } from "../pricing/token-limits.ts";
import { maxOutputTokens } from "../providers/anthropic-model.ts";
import {
  groupOf,
  MODEL_STATUSES,
  statusOf,
  type PricedDeployment,
} from "../routing/catalog.ts";
import { storableOf } from "../routing/stored-models.ts";
import { viewRunner } from "../runners/runner-view.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";

const numberOrNull = z.number().nullable();
const free = z.looseObject({});

export const modelRow = z.object({
  model_id: out.text,
  model_name: out.text,
  litellm_params: free,
  provider_params: free,
  model_info: z.looseObject({ id: out.text, db_model: z.boolean() }),
});

const groupRow = z.looseObject({
  model_group: out.text,
  providers: z.array(out.text),
  mode: out.text,
  max_input_tokens: numberOrNull,
  max_output_tokens: numberOrNull,
  input_cost_per_token: numberOrNull,
  output_cost_per_token: numberOrNull,
  rpm: numberOrNull,
  tpm: numberOrNull,
  status: z.enum(MODEL_STATUSES),
  // And `supports_…`, as far as a `model_info` declares it.
});

/** A model as admin routes show it, with both names of its parameters; `params` has no secrets. */
export function modelAnswer(
  id: string,
  alias: string,
  params: Readonly<Record<string, unknown>>,
  info: Readonly<Record<string, unknown>>,
  stored: boolean,
) {
  return {
    model_id: id,
    model_name: alias,
    litellm_params: params,
    provider_params: params,
    model_info: { ...info, id, db_model: stored },
  };
}

const modelInfo = adminRoute(
  "GET /model/info",
  {
    summary:
      "List the deployments of the aliases that the key may use, and of the teams that it administers, without secrets; with an id the one, or 404.",
    input: z.object({
      litellm_model_id: name.optional(),
      model_id: name.optional(),
    }),
    answer: z.object({ data: z.array(modelRow) }),
  },
  async (admin, { litellm_model_id: litellmId, model_id: id = litellmId }) => {
    const found = visible(admin).filter(
      (deployment) => id === undefined || deployment.id === id,
    );
    if (id !== undefined && found.length === 0) {
      throw unknownModel(id, "model_id");
    }
    return { data: found.map((deployment) => describe(admin, deployment)) };
  },
  ["/v1/model/info"],
);

const modelGroupInfo = adminRoute(
  "GET /model_group/info",
  {
    summary: "List the aliases that the key may use, with prices and limits.",
    input: z.object({ model_group: name.optional() }),
    answer: z.object({ data: z.array(groupRow) }),
  },
  async (admin, { model_group: only }) => ({
    data: [...Map.groupBy(usable(admin), ({ alias }) => alias)]
      .filter(([alias]) => only === undefined || alias === only)
      .map(([alias, deployments]) => group(alias, deployments))
      .sort((a, b) => (a.model_group < b.model_group ? -1 : 1)),
  }),
);

/** The deployments whose alias the key may use. Those of its team hide the shared ones of the same alias. */
function usable({ gateway, caller }: Admin): readonly PricedDeployment[] {
  const { catalog } = gateway;
  const ofTeam = new Set(
    usableModels(catalog, caller).flatMap(({ teamId, configured }) =>
      teamId === null ? [] : [configured],
    ),
  );
  return catalog.deployments.filter(({ alias, teamId }) => {
    const group = catalog.find(alias, teamId);
    const hidden = teamId === null && ofTeam.has(alias);
    return group !== null && !hidden && mayUse(caller, group);
  });
}

/** LiteLLM's Terraform provider recognizes a deleted model by "model not found". */
export function unknownModel(id: string, param = "id"): CallError {
  return new CallError(
    "unknown_object",
    `\`${param}\`: model not found: ${id}. GET /model/info lists the models.`,
    { param },
  );
}

/** Also those of the teams that the caller administers, to manage them. */
export function visible(admin: Admin): readonly PricedDeployment[] {
  const administered = admin.gateway.catalog.deployments.filter((deployment) =>
    isAdministered(admin, deployment),
  );
  return [...new Set([...usable(admin), ...administered])];
}

function isAdministered(
  { actor, reachesAll }: Admin,
  { teamId }: PricedDeployment,
): boolean {
  return teamId !== null && (reachesAll || administersTeam(actor, teamId));
}

export function describe(admin: Admin, deployment: PricedDeployment) {
  const { gateway, reachesAll } = admin;
  const { id, alias, providerName, model, priceCard } = deployment;
  const { config } = gateway;
  const params = {
    model: `${providerName}/${model}`,
    custom_llm_provider: providerName,
    // Internal addresses are for operators only.
    ...(reachesAll || isAdministered(admin, deployment)
      ? { api_base: deployment.apiBase }
      : {}),
    rpm: deployment.rpm,
    tpm: deployment.tpm,
    weight: deployment.weight,
    tags: deployment.tags,
    tag_regex: deployment.tagRegex,
  };
  return modelAnswer(
    id,
    alias,
    params,
    {
      ...deployment.info,
      mode: deployment.mode,
      base_model: deployment.baseModel,
      status: statusOf(deployment),
      blocked: deployment.blocked,
      waits_for: deployment.pending,
      storable: storableOf(deployment),
      ...cooldownOf(gateway, deployment),
      price_source: priceCard?.source ?? null,
      ...prices(priceCard),
      max_input_tokens: contextWindowOf(deployment),
      max_output_tokens: maxOutputTokens(deployment),
      litellm_provider: providerName,
      runner: viewRunner(gateway.runners, deployment),
    },
    config.models.every((model) => model.id !== id),
  );
}

function cooldownOf(
  { router }: Pick<Admin["gateway"], "router">,
  { id }: PricedDeployment,
) {
  const { cooling } = router.cooldowns.stateOf(id);
  return {
    cooling_down_until:
      cooling === null ? null : new Date(cooling.until).toISOString(),
  };
}

/** Dollars per token, at this hour, of the lowest tier; null: unknown. */
function prices(card: PriceCard | null) {
  const rates = card === null ? null : ratesAt(card, Date.now());
  return {
    input_cost_per_token: perToken(rates?.input ?? null),
    output_cost_per_token: perToken(rates?.output ?? null),
    cache_read_input_token_cost: perToken(rates?.cachedInput ?? null),
    cache_creation_input_token_cost: perToken(rates?.cacheWrite ?? null),
  };
}

function perToken(price: Price | null): number | null {
  if (price === null) {
    return null;
  }
  const perMillion = typeof price === "number" ? price : price.base;
  return Number((perMillion / 1e6).toPrecision(12));
}

function group(alias: string, deployments: readonly PricedDeployment[]) {
  const cards = deployments.flatMap(({ priceCard }) => priceCard ?? []);
  const all = cards.map(prices);
  const sum = (of: (deployment: PricedDeployment) => number | null) =>
    deployments.every((deployment) => of(deployment) === null)
      ? null
      : deployments.reduce((total, one) => total + (of(one) ?? 0), 0);
  return {
    model_group: alias,
    providers: [...new Set(deployments.map((one) => one.providerName))],
    mode: deployments[0]?.mode ?? "chat",
    max_input_tokens: largest(deployments.map(contextWindowOf)),
    max_output_tokens: largest(deployments.map(maxOutputTokens)),
    input_cost_per_token: largest(all.map((one) => one.input_cost_per_token)),
    output_cost_per_token: largest(all.map((one) => one.output_cost_per_token)),
    rpm: sum(({ rpm }) => rpm),
    tpm: sum(({ tpm }) => tpm),
    status: statusOf(groupOf(alias, deployments)),
    ...capabilities(deployments),
  };
}

/** `supports_…` that a `model_info` declares: of a group, what any of its deployments has. */
function capabilities(
  deployments: readonly PricedDeployment[],
): Readonly<Record<string, boolean>> {
  const declared = deployments.flatMap(({ info }) =>
    Object.entries(info).filter(
      (entry): entry is [string, boolean] =>
        entry[0].startsWith("supports_") && typeof entry[1] === "boolean",
    ),
  );
  return Object.fromEntries(
    // The last of equal names wins.
    declared.toSorted(([, one], [, other]) => Number(one) - Number(other)),
  );
}

export const MODEL_VIEWS: readonly Route[] = [modelInfo, modelGroupInfo];
