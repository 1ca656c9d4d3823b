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
  gateway: Gateway,
  caller: Caller,
  requested: string,
): ModelGroup {
  const name = resolveAlias(caller, requested);
  const group = findModel(gateway.catalog, caller, name);
  refuseUnlessAllowed(caller, name, group?.teamId ?? null, requested);
  if (group === null) {
    throw unknownModel(requested);
  }
  refuseIfPending(group, requested);
  return group;
}

/** Throws 503 naming the variable that all deployments of a group wait for. */
export function refuseIfPending(
  { pending }: ModelGroup,
  requested: string,
): void {
  if (pending !== null) {
    throw new CallError(
      "model_pending",
      `The model ${requested} is pending: set ${pending} where the gateway runs, then restart it.`,
      { param: "model" },
    );
  }
}

export function unknownModel(requested: string): CallError {
  return new CallError(
    "unknown_model",
    `Invalid model name passed in model=${requested}. Call \`/v1/models\` to see the models that this key may use.`,
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
    .filter(({ alias, teamId }) => mayUse(caller, alias, teamId));
}

/** Whether a caller may see and call an alias, shared by all or of one team. */
export function mayUse(
  caller: Caller,
  name: string,
  teamId: string | null,
): boolean {
  return (
    (teamId === null || teamId === teamOf(caller)) &&
    deniedBy(caller, name, teamId) === null
  );
}

/** The team whose own models a caller's key reaches. */
export function teamOf(caller: Caller): string | null {
  return caller.kind === "key" ? (caller.team?.id ?? null) : null;
}

/** A key and a team can define names for models. */
function resolveAlias(caller: Caller, requested: string): string {
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
  name: string,
  teamId: string | null,
  requested: string,
): void {
  const denied = deniedBy(caller, name, teamId);
  if (denied === null) {
    return;
  }
  const allowed =
    denied.models.length === 0 ? "none" : denied.models.join(", ");
  throw new CallError(
    denied.kind,
    `${denied.whose} not allowed to access model ${requested}. Allowed models: ${allowed}.`,
    { param: "model" },
  );
}

interface Denial {
  readonly kind: ErrorKind;
  readonly whose: string;
  readonly models: readonly string[];
}

/** A team's own model is allowed to the team, whatever the lists of the team and its organization say. */
function deniedBy(
  caller: Caller,
  name: string,
  teamId: string | null,
): Denial | null {
  if (caller.kind === "master") {
    return null;
  }
  const { models, team, organization, user } = caller;
  if (!allows(models, name, teamId === null ? team?.models : [])) {
    return { kind: "key_model_access_denied", whose: "This key is", models };
  }
  if (teamId !== null) {
    return null;
  }
  if (team !== null && !allows(team.models, name)) {
    return {
      kind: "team_model_access_denied",
      whose: `Team ${team.id} is`,
      models: team.models,
    };
  }
  if (organization !== null && !allows(organization.models, name)) {
    return {
      kind: "org_model_access_denied",
      whose: `Organization ${organization.id} is`,
      models: organization.models,
    };
  }
  if (team === null && user !== null && !allows(user.models, name)) {
    return {
      kind: "user_model_access_denied",
      whose: `User ${caller.userId} is`,
      models: user.models,
    };
  }
  return null;
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
