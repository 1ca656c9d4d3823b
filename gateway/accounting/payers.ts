import type { Caller, OtherPayer, PayerLimits } from "../access/callers.ts";
import type { LimitedEntity } from "./limits.ts";
import { nanosFromBudget } from "./money.ts";
import { windowAt } from "./windows.ts";

/** Everyone that a call's row counts for. */
export interface Payers {
  readonly apiKey: string | null;
  readonly userId: string | null;
  readonly teamId: string | null;
  readonly organizationId: string | null;
  readonly endUser: string | null;
  readonly tags: readonly string[];
  /** The alias called; part of the key × model payer. */
  readonly alias: string;
}

/** Names of the payers of a call, as the counters and `spend_totals` know them. */
export function entitiesOf(payers: Payers): readonly string[] {
  const { apiKey, userId, teamId, organizationId, endUser, tags, alias } =
    payers;
  const entities = ["proxy:"];
  if (apiKey !== null)
    entities.push(`key:${apiKey}`, `key_model:${apiKey}/${alias}`);
  if (userId !== null) entities.push(`user:${userId}`);
  if (teamId !== null) entities.push(`team:${teamId}`);
  if (teamId !== null && userId !== null)
    entities.push(`member:${teamId}/${userId}`);
  if (organizationId !== null) entities.push(`organization:${organizationId}`);
  if (endUser !== null) entities.push(`end_user:${endUser}`);
  for (const tag of tags) entities.push(`tag:${tag}`);
  return entities;
}

export interface LimitSources {
  readonly caller: Caller;
  readonly alias: string;
  readonly endUser: OtherPayer | null;
  readonly tags: readonly OtherPayer[];
  readonly proxy: PayerLimits;
}

/**
 * The payers of a call that have a budget or a limit, in the order in which they refuse:
 * key, key × model, team, organization, tags, user (personal keys only), team member, end user, whole proxy.
 */
export function limitedEntities(
  sources: LimitSources,
  at: number,
  timeZone: string,
): readonly LimitedEntity[] {
  const { caller, alias, endUser, tags, proxy } = sources;
  const entities: LimitedEntity[] = [];
  const add = (
    entity: string,
    limits: PayerLimits | null | undefined,
    increase = 0,
  ) => {
    if (limits == null) return;
    const limited = limitedEntity(entity, limits, increase, at, timeZone);
    if (limited !== null) entities.push(limited);
  };
  if (caller.kind === "key") {
    const { token, team, organization, temporaryIncrease } = caller;
    const increase =
      temporaryIncrease !== null && at < temporaryIncrease.until
        ? temporaryIncrease.dollars
        : 0;
    add(`key:${token}`, caller.limits, increase);
    add(`key_model:${token}/${alias}`, caller.modelLimits[alias]);
    if (team !== null) add(`team:${team.id}`, team.limits);
    if (organization !== null)
      add(`organization:${organization.id}`, organization.limits);
    for (const tag of tags) add(`tag:${tag.id}`, tag.limits);
    if (team === null) add(`user:${caller.userId}`, caller.user?.limits);
    else add(`member:${team.id}/${caller.userId}`, team.memberLimits);
  } else {
    for (const tag of tags) add(`tag:${tag.id}`, tag.limits);
    add(`user:${caller.userId}`, caller.user?.limits);
  }
  if (endUser !== null) add(`end_user:${endUser.id}`, endUser.limits);
  add("proxy:", proxy);
  return entities;
}

function limitedEntity(
  entity: string,
  limits: PayerLimits,
  increase: number,
  at: number,
  timeZone: string,
): LimitedEntity | null {
  const {
    maxBudget,
    budgetDuration,
    requestsPerMinute,
    tokensPerMinute,
    parallel,
  } = limits;
  if (
    maxBudget === null &&
    requestsPerMinute === null &&
    tokensPerMinute === null &&
    parallel === null
  )
    return null;
  return {
    entity,
    budget: maxBudget === null ? null : nanosFromBudget(maxBudget + increase),
    window: windowAt(budgetDuration, at, timeZone).name,
    requestsPerMinute,
    tokensPerMinute,
    parallel,
  };
}
