import {
  LEASE_MS,
  RATE_WINDOW_MS,
  type AdmitCall,
  type Admission,
  type LimitedEntity,
} from "../limits.ts";

/** A call in flight, as the model sees it. */
export interface ModelCall {
  readonly callId: string;
  readonly instance: number;
  estimate: number;
  readonly tokens: number;
  expires: number;
  /** The call's reservation by entity. */
  readonly takes: Map<
    string,
    { budget: boolean; slot: boolean; tokensFrom: number | null }
  >;
}

interface ModelCounter {
  /** The ledger. */
  ledger: { total: number; version: number };
  /** The total reported to the store; null: unknown there. */
  reported: { total: number; version: number } | null;
  /** No total older than this is an answer. */
  floor: number;
  /** By instance: the pending sum reported to the store, and how much of it the reported total may already include. */
  readonly parts: { pending: number; unsure: number }[];
  /** By instance: the newest total that it has assigned. After a flush it leaves a recent one behind. */
  readonly assigned: { version: number; at: number }[];
  /** By instance: settled and not yet reported as committed; `committed` of it is in the ledger already. */
  readonly own: {
    pending: number;
    committed: number;
    atCommit: { total: number; version: number } | null;
  }[];
}

const YOUNG_MS = 10_000;
/** Of a total, when Redis is lost: other instances may not have received it. */
const RECENT_MS = 5_000;

/**
 * The limits in the simplest form: no running sums, everything is recomputed each time. Stores must give
 * exactly the same answers.
 */
export class Model {
  now = 1_000_000;
  readonly calls = new Map<string, ModelCall>();
  readonly counters = new Map<
    string,
    ModelCounter & { entity: string; window: string }
  >();
  readonly #rates = new Map<
    string,
    { start: number; requests: number; tokens: number }
  >();
  readonly #instances: number;
  #flushedAt: number | null = null;

  constructor(instances: number) {
    this.#instances = instances;
  }

  counter(entity: string, window: string) {
    const name = `${entity}|${window}`;
    const known = this.counters.get(name);
    if (known !== undefined) {
      return known;
    }
    const each = <T>(make: () => T) =>
      Array.from({ length: this.#instances }, make);
    const made = {
      entity,
      window,
      ledger: { total: 0, version: 0 },
      reported: null,
      floor: -1,
      parts: each(() => ({ pending: 0, unsure: 0 })),
      assigned: each(() => ({ version: -1, at: 0 })),
      own: each(() => ({ pending: 0, committed: 0, atCommit: null })),
    };
    this.counters.set(name, made);
    return made;
  }

  /** The true spend: the ledger's total and everything on its way there. */
  trueSpend(entity: string, window: string): number {
    const { ledger, own } = this.counter(entity, window);
    return (
      ledger.total +
      own.reduce((sum, { pending, committed }) => sum + pending - committed, 0)
    );
  }

  live(): ModelCall[] {
    return [...this.calls.values()].filter(({ expires }) => expires > this.now);
  }

  leased(entity: string): number {
    return this.#holders(entity).reduce(
      (sum, { estimate }) => sum + estimate,
      0,
    );
  }

  #holders(entity: string): ModelCall[] {
    return this.live().filter(
      ({ takes, estimate }) =>
        estimate > 0 && takes.get(entity)?.budget === true,
    );
  }

  #slots(entity: string): number {
    return this.live().filter(({ takes }) => takes.get(entity)?.slot === true)
      .length;
  }

  #rate(entity: string) {
    const rate = this.#rates.get(entity);
    return rate !== undefined && this.now < rate.start + RATE_WINDOW_MS
      ? rate
      : { start: this.now, requests: 0, tokens: 0 };
  }

  #spend({ entity, window }: LimitedEntity): { high: number; sure: number } {
    const { reported, parts } = this.counter(entity, window);
    const pending = parts.reduce((sum, part) => sum + part.pending, 0);
    const unsure = parts.reduce((sum, part) => sum + part.unsure, 0);
    const high = (reported?.total ?? 0) + pending;
    return { high, sure: high - unsure };
  }

  admit(instance: number, call: AdmitCall): Admission {
    const { entities, estimate, strict, callId } = call;
    const standing = this.live().find((other) => other.callId === callId);
    const budgeted = entities.filter(({ budget }) => budget !== null);
    const missing = budgeted.filter(
      ({ entity, window }) => this.counter(entity, window).reported === null,
    );
    if (missing.length > 0) {
      return {
        kind: "totals_missing",
        counters: missing.map(({ entity, window }) => ({ entity, window })),
      };
    }
    for (const payer of budgeted) {
      const budget = payer.budget ?? 0;
      const { sure } = this.#spend(payer);
      if (sure >= budget) {
        return {
          kind: "budget_exceeded",
          entity: payer.entity,
          spend: sure,
          budget,
        };
      }
    }
    const limited = standing === undefined ? this.#overRate(entities) : null;
    if (limited !== null) {
      return limited;
    }
    let lease = estimate;
    if (estimate > 0) {
      for (const payer of strict ? budgeted : []) {
        const remaining = (payer.budget ?? 0) - this.#spend(payer).sure;
        if (estimate > remaining) {
          return {
            kind: "estimate_too_large",
            entity: payer.entity,
            estimate,
            remaining,
          };
        }
      }
      for (const payer of budgeted) {
        const own =
          standing?.takes.get(payer.entity)?.budget === true
            ? standing.estimate
            : 0;
        const remaining =
          (payer.budget ?? 0) -
          this.#spend(payer).high -
          (this.leased(payer.entity) - own);
        if (remaining <= 0 || (strict && estimate > remaining)) {
          return {
            kind: "budget_held",
            entity: payer.entity,
            inFlight: this.#holders(payer.entity).length,
          };
        }
        lease = Math.min(lease, remaining);
      }
    }
    const spends = budgeted.map((payer) => ({
      entity: payer.entity,
      spend: this.#spend(payer).high,
    }));
    this.#take(instance, call, standing);
    return {
      kind: "admitted",
      lease,
      rates: this.#rateStates(entities),
      spends,
    };
  }

  #overRate(entities: readonly LimitedEntity[]): Admission | null {
    for (const {
      entity,
      requestsPerMinute,
      tokensPerMinute,
      parallel,
    } of entities) {
      const rate = this.#rate(entity);
      const resetInMs = rate.start + RATE_WINDOW_MS - this.now;
      if (requestsPerMinute !== null && rate.requests >= requestsPerMinute) {
        return {
          kind: "rate_limited",
          entity,
          limit: "requests",
          allowed: requestsPerMinute,
          resetInMs,
        };
      }
      if (tokensPerMinute !== null && rate.tokens >= tokensPerMinute) {
        return {
          kind: "rate_limited",
          entity,
          limit: "tokens",
          allowed: tokensPerMinute,
          resetInMs,
        };
      }
      if (parallel !== null && this.#slots(entity) >= parallel) {
        return {
          kind: "rate_limited",
          entity,
          limit: "parallel",
          allowed: parallel,
          resetInMs: 1_000,
        };
      }
    }
    return null;
  }

  #take(
    instance: number,
    call: AdmitCall,
    standing: ModelCall | undefined,
  ): void {
    const taken: ModelCall = standing ?? {
      callId: call.callId,
      instance,
      estimate: call.estimate,
      tokens: call.tokens,
      expires: 0,
      takes: new Map(),
    };
    taken.estimate =
      call.mayLower === true
        ? call.estimate
        : Math.max(taken.estimate, call.estimate);
    taken.expires = this.now + LEASE_MS;
    for (const {
      entity,
      budget,
      requestsPerMinute,
      tokensPerMinute,
      parallel,
    } of call.entities) {
      const before = taken.takes.get(entity);
      if (standing !== undefined) {
        taken.takes.set(entity, {
          slot: before?.slot ?? false,
          tokensFrom: before?.tokensFrom ?? null,
          budget: budget !== null,
        });
        continue;
      }
      const rate = this.#rate(entity);
      if (requestsPerMinute !== null || tokensPerMinute !== null) {
        this.#rates.set(entity, {
          ...rate,
          requests: rate.requests + 1,
          tokens: rate.tokens + call.tokens,
        });
      }
      const tokensFrom = tokensPerMinute === null ? null : rate.start;
      taken.takes.set(entity, {
        budget: budget !== null,
        slot: parallel !== null,
        tokensFrom,
      });
    }
    this.calls.set(call.callId, taken);
  }

  #rateStates(entities: readonly LimitedEntity[]) {
    return entities
      .filter(
        ({ requestsPerMinute, tokensPerMinute }) =>
          requestsPerMinute !== null || tokensPerMinute !== null,
      )
      .map(({ entity, requestsPerMinute, tokensPerMinute }) => {
        const rate = this.#rate(entity);
        const resetInMs = rate.start + RATE_WINDOW_MS - this.now;
        const state = (limit: number | null, used: number) =>
          limit === null
            ? null
            : { limit, remaining: Math.max(0, limit - used), resetInMs };
        return {
          entity,
          requests: state(requestsPerMinute, rate.requests),
          tokens: state(tokensPerMinute, rate.tokens),
        };
      });
  }

  /** Returns the pending sums to report. */
  settle(callId: string, cost: number, tokens: number, window: string) {
    const call = this.calls.get(callId);
    if (call === undefined) {
      return [];
    }
    this.calls.delete(callId);
    for (const [entity, { tokensFrom }] of call.takes) {
      const rate = this.#rates.get(entity);
      if (
        tokensFrom === null ||
        rate?.start !== tokensFrom ||
        call.expires <= this.now
      ) {
        continue;
      }
      if (this.now < tokensFrom + RATE_WINDOW_MS) {
        rate.tokens = Math.max(0, rate.tokens + tokens - call.tokens);
      }
    }
    const payers = [...call.takes].filter(([, { budget }]) => budget);
    return payers.map(([entity]) => {
      const counter = this.counter(entity, window);
      const own = counter.own[call.instance];
      const part = counter.parts[call.instance];
      if (own === undefined || part === undefined) {
        throw new Error("no such instance");
      }
      own.pending += cost;
      part.pending = own.pending;
      return { entity, window, pending: own.pending };
    });
  }

  renew(callIds: readonly string[]): void {
    for (const callId of callIds) {
      const call = this.calls.get(callId);
      if (call !== undefined) {
        call.expires = this.now + LEASE_MS;
      }
    }
  }

  /** The drain's commit: pending spend is in the ledger, but not yet reported. */
  commit(instance: number): void {
    for (const { ledger, own } of this.counters.values()) {
      const mine = own[instance];
      if (mine === undefined || mine.pending === mine.committed) {
        continue;
      }
      ledger.total += mine.pending - mine.committed;
      ledger.version++;
      mine.committed = mine.pending;
      mine.atCommit = { ...ledger };
    }
  }

  /** The drain's report after its commit. */
  report(instance: number) {
    const counters = [...this.counters.values()].filter(
      ({ own }) => own[instance]?.atCommit != null,
    );
    return counters.map((counter) => {
      const mine = counter.own[instance];
      if (mine?.atCommit == null) {
        throw new Error("nothing was committed");
      }
      const { total, version } = mine.atCommit;
      mine.pending -= mine.committed;
      mine.committed = 0;
      mine.atCommit = null;
      this.#assign(counter, instance, { total, version }, false);
      return {
        entity: counter.entity,
        window: counter.window,
        total,
        version,
        pending: mine.pending,
      };
    });
  }

  /** Reads a total from the ledger, because it was requested or because an admin changed it. */
  read(instance: number, entity: string, window: string, requested: boolean) {
    const counter = this.counter(entity, window);
    const pending = counter.own[instance]?.pending ?? 0;
    this.#assign(counter, instance, counter.ledger, requested);
    return { entity, window, ...counter.ledger, pending };
  }

  #assign(
    counter: ModelCounter,
    instance: number,
    ledger: { total: number; version: number },
    requested: boolean,
  ): void {
    const part = counter.parts[instance];
    if (part === undefined) {
      throw new Error("no such instance");
    }
    part.pending = counter.own[instance]?.pending ?? 0;
    part.unsure = 0;
    const { version: before } = counter.assigned[instance]!;
    if (ledger.version >= before) {
      counter.assigned[instance] = { version: ledger.version, at: this.now };
    }
    if (ledger.version < counter.floor) {
      return;
    }
    const young =
      this.#flushedAt !== null && this.now < this.#flushedAt + YOUNG_MS;
    const known = counter.reported !== null;
    if (known || requested || !young) {
      if (!known || ledger.version > counter.floor) {
        for (const other of counter.parts) {
          if (other !== part) {
            other.unsure = other.pending;
          }
        }
      }
      counter.reported = { ...ledger };
    }
    counter.floor = ledger.version;
  }

  /** Redis has lost everything; instances have restored their parts. */
  flush(): void {
    this.#flushedAt = this.now;
    this.#rates.clear();
    for (const counter of this.counters.values()) {
      counter.reported = null;
      const recent = counter.assigned.filter(
        ({ at }) => at >= this.now - RECENT_MS,
      );
      counter.floor = Math.max(-1, ...recent.map(({ version }) => version));
      for (const part of counter.parts) {
        part.unsure = part.pending;
      }
    }
    for (const call of this.live()) {
      for (const take of call.takes.values()) {
        take.tokensFrom = null;
      }
    }
  }
}
