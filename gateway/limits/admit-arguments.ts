import {
  LEASE_MS,
  type AdmitCall,
  type Admission,
  type LimitedEntity,
  type RateState,
} from "./limits.ts";
import { numberAt, type Reply } from "./scripts.ts";

/** Calls that are admitted by one script. Payers and lists of payers that several calls share are sent once. */
interface AdmitBatch {
  readonly calls: readonly AdmitCall[];
  readonly payers: readonly LimitedEntity[];
  readonly lists: readonly (readonly LimitedEntity[])[];
  readonly args: readonly string[];
}

/** Arguments of admit.lua. */
export function admitBatch(calls: readonly AdmitCall[]): AdmitBatch {
  const payers = new Map<LimitedEntity, number>();
  const lists = new Map<readonly LimitedEntity[], number>();
  for (const call of calls) {
    positionOf(lists, call.entities);
    for (const payer of call.entities) {
      positionOf(payers, payer);
    }
  }
  const args = [String(LEASE_MS), String(payers.size)];
  for (const payer of payers.keys()) {
    args.push(
      payer.entity,
      optional(payer.budget),
      payer.window,
      optional(payer.requestsPerMinute),
      optional(payer.tokensPerMinute),
      optional(payer.parallel),
    );
  }
  args.push(String(lists.size));
  for (const list of lists.keys()) {
    args.push(String(list.length));
    for (const payer of list) {
      args.push(String(positionOf(payers, payer)));
    }
  }
  for (const call of calls) {
    args.push(
      call.callId,
      String(call.estimate),
      String(call.tokens),
      call.strict ? "1" : "0",
      call.mayLower === true ? "1" : "0",
      String(positionOf(lists, call.entities)),
    );
  }
  return {
    calls,
    payers: [...payers.keys()],
    lists: [...lists.keys()],
    args,
  };
}

/** From 1; the next one where it is new. */
function positionOf<T>(positions: Map<T, number>, item: T): number {
  const known = positions.get(item);
  if (known !== undefined) {
    return known;
  }
  const position = positions.size + 1;
  positions.set(item, position);
  return position;
}

const MISSING = 1;
const EXCEEDED = 2;
const HELD = 3;
const TOO_LARGE = 4;
const RATE = 5;
const RATE_LIMITS = ["requests", "tokens", "parallel"] as const;
/** Numbers for each payer: requests, tokens, ms left of the minute, spend. */
const PAYER_NUMBERS = 4;
const FIRST_PAYER = 2;

/** Reads the reply of admit.lua: one admission for each call. */
export function readAdmissions(
  reply: Reply,
  { calls, payers, lists }: AdmitBatch,
): readonly Admission[] {
  const states = new Map<LimitedEntity, PayerState>();
  for (const [i, payer] of payers.entries()) {
    states.set(
      payer,
      payerState(reply, FIRST_PAYER + i * PAYER_NUMBERS, payer),
    );
  }
  const left = new Map(lists.map((list) => [list, leftOf(list, states)]));
  const first = FIRST_PAYER + payers.length * PAYER_NUMBERS;
  return calls.map((call, i) => {
    const answer = reply[first + i];
    if (!Array.isArray(answer)) {
      return {
        kind: "admitted",
        lease: numberAt(reply, first + i),
        ...(left.get(call.entities) ?? NOTHING_LEFT),
      };
    }
    return refusal(answer, call);
  });
}

interface PayerState {
  readonly rate: RateState | null;
  /** null: no budget. */
  readonly spend: number | null;
}

type Left = Pick<Extract<Admission, { kind: "admitted" }>, "rates" | "spends">;

const NOTHING_LEFT: Left = { rates: [], spends: [] };

/** A payer as it is after all calls of the batch. */
function payerState(
  reply: Reply,
  at: number,
  payer: LimitedEntity,
): PayerState {
  const { entity, budget, requestsPerMinute, tokensPerMinute } = payer;
  const spend = budget === null ? -1 : numberAt(reply, at + 3);
  return {
    spend: spend < 0 ? null : spend,
    rate:
      requestsPerMinute === null && tokensPerMinute === null
        ? null
        : {
            entity,
            requests: minuteState(requestsPerMinute, reply, at, at + 2),
            tokens: minuteState(tokensPerMinute, reply, at + 1, at + 2),
          },
  };
}

function minuteState(
  limit: number | null,
  reply: Reply,
  usedAt: number,
  leftAt: number,
): RateState["requests"] {
  if (limit === null) {
    return null;
  }
  return {
    limit,
    remaining: Math.max(0, limit - numberAt(reply, usedAt)),
    resetInMs: numberAt(reply, leftAt),
  };
}

function leftOf(
  list: readonly LimitedEntity[],
  states: ReadonlyMap<LimitedEntity, PayerState>,
): Left {
  const rates: RateState[] = [];
  const spends: { entity: string; spend: number }[] = [];
  for (const payer of list) {
    const state = states.get(payer);
    if (state === undefined) {
      continue;
    }
    if (state.rate !== null) {
      rates.push(state.rate);
    }
    if (state.spend !== null) {
      spends.push({ entity: payer.entity, spend: state.spend });
    }
  }
  return { rates, spends };
}

function refusal(answer: Reply, call: AdmitCall): Admission {
  const code = numberAt(answer, 0);
  if (code === MISSING) {
    return {
      kind: "totals_missing",
      counters: answer.slice(1).map((_, i) => {
        const { entity, window } = payerAt(call, answer, i + 1);
        return { entity, window };
      }),
    };
  }
  const limits = payerAt(call, answer, 1);
  const { entity } = limits;
  const detail = numberAt(answer, 2);
  switch (code) {
    case EXCEEDED:
      return {
        kind: "budget_exceeded",
        entity,
        spend: detail,
        budget: limits.budget ?? 0,
      };
    case HELD:
      return { kind: "budget_held", entity, inFlight: detail };
    case TOO_LARGE:
      return {
        kind: "estimate_too_large",
        entity,
        estimate: call.estimate,
        remaining: detail,
      };
    case RATE: {
      const limit = RATE_LIMITS[detail - 1] ?? "requests";
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
        resetInMs: numberAt(answer, 3),
      };
    }
    default:
      throw new Error(`unknown code from a limits script: ${code}`);
  }
}

function payerAt(call: AdmitCall, answer: Reply, at: number): LimitedEntity {
  const payer = call.entities[numberAt(answer, at)];
  if (payer === undefined) {
    throw new Error(
      "a limits script named an entity that the call does not have",
    );
  }
  return payer;
}

function optional(limit: number | null): string {
  return limit === null ? "" : String(limit);
}
