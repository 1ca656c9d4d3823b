import { CallError, type ErrorKind } from "../http/errors.ts";
import type { Gateway } from "../gateway.ts";
import type { ModelGroup } from "../routing/catalog.ts";
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
  refuseUnlessAllowed(caller, name, requested);
  const group = gateway.catalog.find(name);
  if (group === null) {
    throw unknownModel(requested);
  }
  if (group.pending !== null) {
    throw new CallError(
      "model_pending",
      `The model ${requested} is pending: set ${group.pending} where the gateway runs, then restart it.`,
      { param: "model" },
    );
  }
  return group;
}

export function unknownModel(requested: string): CallError {
  return new CallError(
    "unknown_model",
    `Invalid model name passed in model=${requested}. Call \`/v1/models\` to see the models that this key may use.`,
    { param: "model" },
  );
}

/** Whether a caller may see and call an alias. */
export function mayUse(caller: Caller, name: string): boolean {
  return deniedBy(caller, name) === null;
}

/** The names for models that a key and its team define. */
export function ownNames(caller: Caller): readonly string[] {
  return caller.kind === "master"
    ? []
    : [...caller.aliases.keys(), ...(caller.team?.modelAliases.keys() ?? [])];
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
  name: string,
  requested: string,
): void {
  const denied = deniedBy(caller, name);
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
  readonly whose: "key" | "team" | "org" | "user";
  readonly owner: string;
  readonly models: readonly string[];
}

function deniedBy(caller: Caller, name: string): Denial | null {
  if (caller.kind === "master") {
    return null;
  }
  const { models, team, organization, user } = caller;
  if (!allows(models, name, team?.models)) {
    return { kind: "key_model_access_denied", whose: "key", owner: "", models };
  }
  if (team !== null && !allows(team.models, name)) {
    return {
      kind: "team_model_access_denied",
      whose: "team",
      owner: ` of team ${team.id}`,
      models: team.models,
    };
  }
  if (organization !== null && !allows(organization.models, name)) {
    return {
      kind: "org_model_access_denied",
      whose: "org",
      owner: ` of organization ${organization.id}`,
      models: organization.models,
    };
  }
  if (team === null && user !== null && !allows(user.models, name)) {
    return {
      kind: "user_model_access_denied",
      whose: "user",
      owner: ` of user ${caller.userId}`,
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
