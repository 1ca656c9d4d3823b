import type {
  Caller,
  KeyCaller,
  OtherPayer,
  PayerLimits,
} from "../access/callers.ts";
import type { LimitedEntity } from "../limits/limits.ts";
import { nanosFromBudget } from "../pricing/money.ts";
import type { GeneralConfig } from "../config/types.ts";
import { windowAt } from "./budget-windows.ts";

/** All payers that a call's row counts for. */
export interface Payers {
  readonly apiKey: string | null;
  readonly userId: string | null;
  /** Whether the call counts for the user too, not only for the member of a team. */
  readonly userPays: boolean;
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
  if (apiKey !== null) {
    entities.push(`key:${apiKey}`, `key_model:${apiKey}/${alias}`);
  }
  if (userId !== null && payers.userPays) {
    entities.push(`user:${userId}`);
  }
  if (teamId !== null) {
    entities.push(`team:${teamId}`);
  }
  if (teamId !== null && userId !== null) {
    entities.push(`member:${teamId}/${userId}`);
  }
  if (organizationId !== null) {
    entities.push(`organization:${organizationId}`);
  }
  if (endUser !== null) {
    entities.push(`end_user:${endUser}`);
  }
  for (const tag of tags) {
    entities.push(`tag:${tag}`);
  }
  return entities;
}

export interface LimitSources {
  readonly caller: Caller;
  readonly alias: string;
  readonly endUser: OtherPayer | null;
  readonly tags: readonly OtherPayer[];
  readonly proxy: PayerLimits;
}

const proxyLimits = new WeakMap<GeneralConfig, PayerLimits>();

/** The limits of the whole gateway: one object for each configuration. */
export function proxyLimitsOf(general: GeneralConfig): PayerLimits {
  const known = proxyLimits.get(general);
  if (known !== undefined) {
    return known;
  }
  const limits = {
    maxBudget: general.maxBudget,
    budgetDuration: general.budgetDuration,
    requestsPerMinute: null,
    tokensPerMinute: null,
    parallel: null,
  };
  proxyLimits.set(general, limits);
  return limits;
}

/** Valid for a time: windows end, and so may a temporary increase. */
interface Kept {
  readonly proxy: PayerLimits;
  readonly timeZone: string;
  readonly from: number;
  readonly until: number;
  readonly entities: readonly LimitedEntity[];
}

/** By key and alias: nearly all calls of a key have the same payers as its previous one. */
const kept = new WeakMap<Caller, Map<string, Kept>>();
/** Wildcard models can have any name. */
const MAX_ALIASES = 100;

/**
 * The payers of a call that have a budget or a limit, in order of precedence:
 * key, key × model, team, organization, tags, user (of a team's key if that user agreed), team member, end user, whole proxy.
 * The same list, not only an equal one, for calls of one key and alias without tags and end user.
 */
export function limitedEntities(
  sources: LimitSources,
  at: number,
  timeZone: string,
): readonly LimitedEntity[] {
  const { caller, alias, endUser, tags, proxy } = sources;
  if (caller.kind !== "key" || endUser !== null || tags.length > 0) {
    return findEntities(sources, at, timeZone).entities;
  }
  const ofCaller = kept.get(caller) ?? new Map<string, Kept>();
  const known = ofCaller.get(alias);
  if (
    known !== undefined &&
    known.proxy === proxy &&
    known.timeZone === timeZone &&
    at >= known.from &&
    at < known.until
  ) {
    return known.entities;
  }
  const found = findEntities(sources, at, timeZone);
  if (ofCaller.size >= MAX_ALIASES) {
    ofCaller.clear();
  }
  ofCaller.set(alias, { ...found, proxy, timeZone });
  kept.set(caller, ofCaller);
  return found.entities;
}

/** The budget counters of a key's payers, whichever model a call names. */
export function countersOfKey(
  caller: KeyCaller,
  proxy: PayerLimits,
  at: number,
  timeZone: string,
): readonly Counter[] {
  const counters = new Map<string, Counter>();
  for (const alias of ["", ...caller.modelLimits.keys()]) {
    const sources = { caller, alias, endUser: null, tags: [], proxy };
    for (const { entity, budget, window } of findEntities(sources, at, timeZone)
      .entities) {
      if (budget !== null) {
        counters.set(entity, { entity, window });
      }
    }
  }
  return [...counters.values()];
}

/** The payers, with the period in which they are valid. */
function findEntities(
  { caller, alias, endUser, tags, proxy }: LimitSources,
  at: number,
  timeZone: string,
): Pick<Kept, "from" | "until" | "entities"> {
  const found = new FoundEntities(at, timeZone);
  if (caller.kind === "key") {
    addKeyPayers(found, caller, alias, tags);
  } else {
    for (const tag of tags) {
      found.add(`tag:${tag.id}`, tag.limits);
    }
    found.add(`user:${caller.userId}`, caller.user?.limits);
  }
  if (endUser !== null) {
    found.add(`end_user:${endUser.id}`, endUser.limits);
  }
  found.add("proxy:", proxy);
  return found;
}

function addKeyPayers(
  found: FoundEntities,
  caller: KeyCaller,
  alias: string,
  tags: LimitSources["tags"],
): void {
  const { token, team, organization, temporaryIncrease } = caller;
  const increase =
    temporaryIncrease === null ? 0 : found.increaseOf(temporaryIncrease);
  found.add(`key:${token}`, caller.limits, increase);
  found.add(`key_model:${token}/${alias}`, caller.modelLimits.get(alias));
  if (team !== null) {
    found.add(`team:${team.id}`, team.limits);
  }
  if (organization !== null) {
    found.add(`organization:${organization.id}`, organization.limits);
  }
  for (const tag of tags) {
    found.add(`tag:${tag.id}`, tag.limits);
  }
  if (caller.userPays) {
    found.add(`user:${caller.userId}`, caller.user?.limits);
  }
  if (team !== null) {
    found.add(`member:${team.id}/${caller.userId}`, team.memberLimits);
  }
}

/** Payers of a call at a moment; they are valid from `from` until `until`. */
class FoundEntities {
  readonly entities: LimitedEntity[] = [];
  from = -Infinity;
  until = Infinity;
  readonly #at: number;
  readonly #timeZone: string;

  constructor(at: number, timeZone: string) {
    this.#at = at;
    this.#timeZone = timeZone;
  }

  /** The dollars of an increase that has not ended. */
  increaseOf({ dollars, until }: TemporaryIncrease): number {
    if (this.#at < until) {
      this.until = until;
      return dollars;
    }
    this.from = until;
    return 0;
  }

  add(
    entity: string,
    limits: PayerLimits | null | undefined,
    increase = 0,
  ): void {
    if (limits == null || isUnlimited(limits)) {
      return;
    }
    const { maxBudget, budgetDuration } = limits;
    const window = windowAt(budgetDuration, this.#at, this.#timeZone);
    this.from = Math.max(this.from, window.start);
    this.until = Math.min(this.until, window.end);
    const dollars = maxBudget === null ? null : maxBudget + increase;
    this.entities.push({
      entity,
      budget: dollars === null ? null : nanosFromBudget(dollars),
      maxBudget: dollars,
      window: window.name,
      requestsPerMinute: limits.requestsPerMinute,
      tokensPerMinute: limits.tokensPerMinute,
      parallel: limits.parallel,
    });
  }
}

type TemporaryIncrease = NonNullable<KeyCaller["temporaryIncrease"]>;

function isUnlimited(limits: PayerLimits): boolean {
  return (
    limits.maxBudget === null &&
    limits.requestsPerMinute === null &&
    limits.tokensPerMinute === null &&
    limits.parallel === null
  );
}
export interface Counter {
  readonly entity: string;
  readonly window: string;
}
