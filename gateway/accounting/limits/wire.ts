import {
  LEASE_MS,
  type AdmitCall,
  type Admission,
  type CounterParts,
  type LimitedEntity,
  type LimitState,
  type RateState,
  type Settlement,
} from "../limits.ts";
import type { Nanos } from "../money.ts";
import type { HeldCall } from "./held.ts";
import type { PendingCounter } from "./counters.ts";
import { limitState } from "./rates.ts";
import { numberAt, type Reply } from "./scripts.ts";
import type { Sighting } from "./share.ts";

/** Most items in one script call: Redis serves nobody else meanwhile. */
const BATCH = 500;

/** `cacheInRedis`: the script looks the answer up. `hit`: it was found elsewhere, so the call costs nothing. */
export function admitArguments(
  call: AdmitCall,
  cacheInRedis: boolean,
  hit: boolean,
): string[] {
  const args = [
    call.callId,
    String(hit ? 0 : call.estimate),
    String(hit ? 0 : call.tokens),
    call.strict ? "1" : "0",
    String(LEASE_MS),
    cacheInRedis ? (call.cacheKey ?? "") : "",
  ];
  for (const limits of call.entities)
    args.push(
      limits.entity,
      optional(limits.budget),
      limits.window,
      optional(limits.requestsPerMinute),
      optional(limits.tokensPerMinute),
      optional(limits.parallel),
    );
  return args;
}

/**
 * Pending sums as they are when they are sent: a drain may have lowered one since the call was settled. Those of payers
 * that several calls share are sent once.
 */
export function settleArguments(
  calls: readonly Settlement[],
  pendingOf: (entity: string, window: string) => Nanos,
): string[] {
  const args: string[] = [];
  const sent = new Set<string>();
  for (const { callId, tokens, pending } of calls) {
    const unsent = pending.filter(({ entity, window }) => {
      const name = `${entity}|${window}`;
      return !sent.has(name) && sent.add(name);
    });
    args.push(callId, String(tokens), String(unsent.length));
    for (const { entity, window } of unsent)
      args.push(entity, window, String(pendingOf(entity, window)));
  }
  return args;
}

/** What a total that Redis does not know may do: be set as asked for, be set once the generation is old enough, never. */
export type Creation = "1" | "0" | "-";

export function assignArguments(
  counters: readonly CounterParts[],
  creation: (counter: CounterParts) => Creation,
): readonly string[][] {
  return batches(counters).map((batch) =>
    batch.flatMap((counter) => [
      counter.entity,
      counter.window,
      String(counter.total),
      String(counter.version),
      String(counter.pending),
      creation(counter),
    ]),
  );
}

export function batches<T>(items: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, i) =>
    items.slice(i * BATCH, (i + 1) * BATCH),
  );
}

/** Everything that an instance knows of itself, in as many calls of the script as it takes. */
export function partsArguments(
  over: readonly string[],
  pending: readonly PendingCounter[],
  calls: readonly HeldCall[],
  now: number,
): readonly string[][] {
  const all: string[][] = [];
  for (
    let at = 0;
    at < Math.max(over.length, pending.length, calls.length);
    at += BATCH
  ) {
    const overNow = over.slice(at, at + BATCH);
    const pendingNow = pending.slice(at, at + BATCH);
    const args = [
      String(overNow.length),
      ...overNow,
      String(pendingNow.length),
    ];
    for (const part of pendingNow)
      args.push(part.entity, part.window, String(part.pending));
    for (const call of calls.slice(at, at + BATCH)) {
      args.push(
        call.callId,
        String(call.estimate),
        String(call.expires - now),
        String(call.accounts.length),
      );
      for (const [i, account] of call.accounts.entries())
        args.push(account.entity, String(call.takes[i] ?? 0));
    }
    all.push(args);
  }
  return all;
}

const ADMITTED = 0;
const MISSING = 1;
const EXCEEDED = 2;
const HELD = 3;
const TOO_LARGE = 4;
const RATE = 5;
const RATE_LIMITS = ["requests", "tokens", "parallel"] as const;
/** Numbers for each entity of an admitted call: requests, tokens, ms left of the minute, spend, leased. */
const ENTITY_NUMBERS = 5;

/** Reads what admit.lua answered; tells what it says of each budget. */
export function readAdmission(
  reply: Reply,
  call: AdmitCall,
  saw: (entity: string, sighting: Omit<Sighting, "at">) => void,
): Admission {
  const code = numberAt(reply, 0);
  if (code === ADMITTED) return admitted(reply, call, saw);
  if (code === MISSING)
    return { kind: "totals_missing", counters: missing(reply, call) };
  const limits = call.entities[numberAt(reply, 2)];
  if (limits === undefined)
    throw new Error(
      "a limits script named an entity that the call does not have",
    );
  const { entity, window } = limits;
  const first = numberAt(reply, 3);
  switch (code) {
    case EXCEEDED:
      return {
        kind: "budget_exceeded",
        entity,
        spend: first,
        budget: limits.budget ?? 0,
      };
    case HELD:
      saw(entity, {
        window,
        spend: numberAt(reply, 4),
        leased: numberAt(reply, 5),
      });
      return { kind: "budget_held", entity, inFlight: first };
    case TOO_LARGE:
      return {
        kind: "estimate_too_large",
        entity,
        estimate: call.estimate,
        remaining: first,
      };
    case RATE: {
      const limit = RATE_LIMITS[first - 1] ?? "requests";
      const allowed =
        limit === "requests"
          ? limits.requestsPerMinute
          : limit === "tokens"
            ? limits.tokensPerMinute
            : limits.parallel;
      return {
        kind: "rate_limited",
        entity,
        limit,
        allowed: allowed ?? 0,
        resetInMs: numberAt(reply, 4),
      };
    }
    default:
      throw new Error(`a limits script answered the unknown code ${code}`);
  }
}

function admitted(
  reply: Reply,
  call: AdmitCall,
  saw: Parameters<typeof readAdmission>[2],
): Admission {
  const cached = reply[3];
  const rates: RateState[] = [];
  const spends: { entity: string; spend: number }[] = [];
  for (const [i, limits] of call.entities.entries()) {
    const at = 4 + i * ENTITY_NUMBERS;
    const { entity, window, requestsPerMinute, tokensPerMinute } = limits;
    if (requestsPerMinute !== null || tokensPerMinute !== null) {
      const resetInMs = numberAt(reply, at + 2);
      const state = (limit: number | null, used: number) =>
        limit === null
          ? null
          : { limit, remaining: Math.max(0, limit - used), resetInMs };
      rates.push({
        entity,
        requests: state(requestsPerMinute, numberAt(reply, at)),
        tokens: state(tokensPerMinute, numberAt(reply, at + 1)),
      });
    }
    if (limits.budget !== null) {
      const spend = numberAt(reply, at + 3);
      spends.push({ entity, spend });
      saw(entity, { window, spend, leased: numberAt(reply, at + 4) });
    }
  }
  return {
    kind: "admitted",
    lease: numberAt(reply, 2),
    rates,
    spends,
    cached: Buffer.isBuffer(cached) ? cached : null,
  };
}

/** Numbers for each entity that was looked at. */
const LOOK_NUMBERS = 4;

/** Reads what look.lua answered. */
export function readLook(
  reply: Reply,
  entities: readonly LimitedEntity[],
): readonly LimitState[] {
  return entities.map((limits, index) => {
    const at = 1 + index * LOOK_NUMBERS;
    return limitState(limits, null, {
      requests: numberAt(reply, at),
      tokens: numberAt(reply, at + 1),
      resetInMs: numberAt(reply, at + 2),
      slots: numberAt(reply, at + 3),
    });
  });
}

function missing(
  reply: Reply,
  call: AdmitCall,
): { readonly entity: string; readonly window: string }[] {
  return reply.slice(2).map((index) => {
    const limits = call.entities[Number(index)];
    if (limits === undefined)
      throw new Error(
        "a limits script named an entity that the call does not have",
      );
    return { entity: limits.entity, window: limits.window };
  });
}

function optional(limit: number | null): string {
  return limit === null ? "" : String(limit);
}
