import { nearest } from "../../core/nearest.ts";
import { howToSupplyGateway } from "../../core/installation.ts";
import { CallError, type ErrorKind } from "../http/errors.ts";
import type { Gateway } from "../gateway.ts";
import type { Catalog, ModelGroup } from "../routing/catalog.ts";
import type { Caller } from "./callers.ts";

/** Names for sets of models in a list of allowed models. */
const ALL_MODELS = new Set(["*", "all-proxy-models"]);
const TEAM_MODELS = "all-team-models";
export const NO_MODELS = "no-default-models";

/**
 * The alias that a call means, if its key, its team, its organization and (personal keys) its user all allow it.
 * Throws 403 naming what is allowed, 400 for a name that nothing answers to, 503 for one that waits for a variable.
 */
export function authorizeModel(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  requested: string,
): ModelGroup {
  const name = resolveAlias(caller, requested);
  const group = findModel(gateway.catalog, caller, name);
  refuseUnlessAllowed(caller, namedModel(name, group), requested);
  if (group === null) {
    throw unknownModel(
      requested,
      nearest(
        name,
        usableModels(gateway.catalog, caller).map(({ alias }) => alias),
      ),
    );
  }
  refuseIfUnusable(group, requested);
  return isLimitedAs(caller, name) && !isLimitedAs(caller, group.alias)
    ? { ...group, alias: name }
    : group;
}

/**
 * Throws 403 unless the caller may use the provider's models that a call names besides its own: by their own names, or those of
 * aliases with a deployment of them.
 */
export function authorizeProviderModels(
  { catalog }: Pick<Gateway, "catalog">,
  caller: Caller,
  models: readonly string[],
): void {
  const ofAliases = new Set(
    usableModels(catalog, caller).flatMap(({ deployments }) =>
      deployments.map(({ model }) => model),
    ),
  );
  for (const model of models) {
    if (!ofAliases.has(model)) {
      refuseUnlessAllowed(caller, namedModel(model, null), model);
    }
  }
}

/** Whether the key has limits of its own for a model of that name. */
export function isLimitedAs(caller: Caller, name: string): boolean {
  return caller.kind === "key" && caller.modelLimits.has(name);
}

/** Throws 403 for a model that is switched off, 503 naming the variable that all its deployments wait for. */
export function refuseIfUnusable(
  { blocked, pending }: ModelGroup,
  requested: string,
): void {
  if (blocked) {
    throw new CallError(
      "model_blocked",
      `The model ${requested} is switched off. Its operator can switch it on: \`hearth models on ${requested}\`.`,
      { param: "model" },
    );
  }
  if (pending !== null) {
    throw new CallError(
      "model_pending",
      `The model ${requested} is pending: ${pending} is missing. Its operator can ${howToSupplyGateway(pending, process.env)}.`,
      { param: "model", headers: { "x-should-retry": "false" } },
    );
  }
}

/** `similar` is what the caller may have meant; the sentence before it is LiteLLM's. */
export function unknownModel(requested: string, similar?: string): CallError {
  const meant = similar === undefined ? "" : ` Did you mean ${similar}?`;
  return new CallError(
    "unknown_model",
    `Invalid model name passed in model=${requested}.${meant} Call \`/v1/models\` to see the models that this key may use.`,
    { param: "model" },
  );
}

/** The group that a caller means by a name, among those of its team and those shared by all; null: there is none. */
export function findModel(
  catalog: Catalog,
  caller: Caller,
  name: string,
): ModelGroup | null {
  return catalog.find(name, teamOf(caller));
}

/** The aliases that a caller may see and call. */
export function usableModels(
  catalog: Catalog,
  caller: Caller,
): readonly ModelGroup[] {
  return catalog
    .groupsFor(teamOf(caller))
    .filter((group) => mayUse(caller, group));
}

/** Whether a caller may see and call an alias, which it may also call by `name`. */
export function mayUse(
  caller: Caller,
  group: NamedGroup,
  name = group.alias,
): boolean {
  return (
    (group.teamId === null || group.teamId === teamOf(caller)) &&
    deniedBy(caller, namedModel(name, group)) === null
  );
}

/** The team whose own models a caller's key reaches. */
export function teamOf(caller: Caller): string | null {
  return caller.kind === "key" ? (caller.team?.id ?? null) : null;
}

/** A model by all that a list of allowed models may say for it. */
interface NamedModel {
  /** As called, and as the alias that it means. */
  readonly names: readonly string[];
  readonly accessGroups: readonly string[];
  /** The team whose own model it is; null: shared by all. */
  readonly teamId: string | null;
}

type NamedGroup = Pick<ModelGroup, "alias" | "accessGroups" | "teamId">;

function namedModel(name: string, group: NamedGroup | null): NamedModel {
  return {
    names:
      group === null || group.alias === name ? [name] : [name, group.alias],
    accessGroups: group?.accessGroups ?? [],
    teamId: group?.teamId ?? null,
  };
}

/** The names for models that a key and its team define. */
export function ownNames(caller: Caller): readonly string[] {
  return caller.kind === "master"
    ? []
    : [...caller.aliases.keys(), ...(caller.team?.modelAliases.keys() ?? [])];
}

/** The names in the lists of allowed models of a key and its team. */
export function allowedNames(caller: Caller): readonly string[] {
  return caller.kind === "master"
    ? []
    : [...caller.models, ...(caller.team?.models ?? [])];
}

/** The model that a name of the key or its team means; any other name means itself. */
export function resolveAlias(caller: Caller, requested: string): string {
  if (caller.kind === "master") {
    return requested;
  }
  return (
    caller.aliases.get(requested) ??
    caller.team?.modelAliases.get(requested) ??
    requested
  );
}

function refuseUnlessAllowed(
  caller: Caller,
  model: NamedModel,
  requested: string,
): void {
  const denied = deniedBy(caller, model);
  if (denied === null) {
    return;
  }
  const allowed =
    denied.models.length === 0 ? "none" : denied.models.join(", ");
  throw new CallError(
    denied.kind,
    `${denied.whose} not allowed to access model ${requested}. Allowed models${denied.owner}: ${allowed}.`,
    { param: "model" },
  );
}

interface Denial {
  readonly kind: ErrorKind;
  /** LiteLLM's word, which its clients look for. */
  readonly whose: "key" | "team" | "team member" | "org" | "user";
  readonly owner: string;
  readonly models: readonly string[];
}

/** A team's own model is allowed to the team, whatever the lists of the team and its organization say. */
function deniedBy(caller: Caller, model: NamedModel): Denial | null {
  if (caller.kind === "master") {
    return null;
  }
  const { models, team, organization, user } = caller;
  const ofTeam = model.teamId !== null;
  if (!allowsModel(models, model, ofTeam ? [] : team?.models)) {
    return { kind: "key_model_access_denied", whose: "key", owner: "", models };
  }
  if (ofTeam) {
    return null;
  }
  if (team !== null && !allowsModel(team.models, model)) {
    return {
      kind: "team_model_access_denied",
      whose: "team",
      owner: ` of team ${team.id}`,
      models: team.models,
    };
  }
  if (team !== null && !allowsModel(team.memberModels, model, team.models)) {
    return {
      kind: "team_model_access_denied",
      whose: "team member",
      owner: ` of this member of team ${team.id}`,
      models: team.memberModels,
    };
  }
  if (organization !== null && !allowsModel(organization.models, model)) {
    return {
      kind: "org_model_access_denied",
      whose: "org",
      owner: ` of organization ${organization.id}`,
      models: organization.models,
    };
  }
  if (team === null && user !== null && !allowsModel(user.models, model)) {
    return {
      kind: "user_model_access_denied",
      whose: "user",
      owner: ` of user ${caller.userId}`,
      models: user.models,
    };
  }
  return null;
}

/** Whether a list of allowed models, such as a team's, allows an alias. */
export function listAllows(
  models: readonly string[],
  group: NamedGroup,
): boolean {
  return allowsModel(models, namedModel(group.alias, group));
}

function allowsModel(
  models: readonly string[],
  { names, accessGroups }: NamedModel,
  teamModels: readonly string[] = [],
): boolean {
  return (
    names.some((name) => allows(models, name, teamModels)) ||
    accessGroups.some(
      (group) =>
        models.includes(group) ||
        (models.includes(TEAM_MODELS) && teamModels.includes(group)),
    )
  );
}

/** An empty list means all; `openai/*` means every name that begins so. */
export function allows(
  models: readonly string[],
  name: string,
  teamModels: readonly string[] = [],
): boolean {
  if (models.length === 0) {
    return true;
  }
  return models.some((model) => {
    if (model === NO_MODELS) {
      return false;
    }
    if (ALL_MODELS.has(model) || model === name) {
      return true;
    }
    if (model === TEAM_MODELS) {
      return allows(teamModels, name);
    }
    return model.endsWith("*") && name.startsWith(model.slice(0, -1));
  });
}
