import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { MINUTE_MS } from "../../core/duration.ts";
import {
  LEASE_MS,
  type AdmitCall,
  type Admission,
  type CounterParts,
  type LastKnown,
  type LimitCounts,
  type LimitedEntity,
  type Limits,
  type LimitsMode,
  type LimitState,
  type Settlement,
} from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import { atEndOfTurn } from "../cache/redis.ts";
import { admitBatch, readAdmissions } from "./admit-arguments.ts";
import { Counters } from "./counters.ts";
import { PreviousProcess } from "./previous-process.ts";
import { ReleaseWaits } from "./release-waits.ts";
import { Batcher } from "./batcher.ts";
import { Instances, type InstanceState } from "./instances.ts";
import { Link } from "./redis-link.ts";
import { numberAt, REBUILDING, STALE } from "./scripts.ts";
import { OutageCounts } from "./outage-counts.ts";
import { createShare } from "./share.ts";
import { PendingUpdates, nameOf } from "./pending-updates.ts";
import {
  assignArguments,
  batches,
  partsArguments,
  readLook,
  readMoved,
  settleArguments,
  type Creation,
} from "./script-arguments.ts";

/** {@link LimitsOptions} with defaults filled in. */
interface RedisLimitsOptions {
  /** A client that fails at once while disconnected and never resends a command (`connectRedis`). Not closed here. */
  readonly redis: Redis;
  readonly instance: string;
  readonly failClosed: boolean;
  readonly prefix: string;
  readonly now: (() => number) | null;
  readonly leastInstances: () => number;
  readonly undrained: () => number;
  readonly deadlineMs: number;
  readonly beatMs: number;
  readonly rebuildMs: number;
  readonly discoverMs: number;
  readonly onAway: (reason: string) => void;
  readonly onBack: () => void;
}

const REBUILD_POLL_MS = 20;
const MAX_ADMIT_MS = 5_000;
const KEEP_REQUESTED_MS = MINUTE_MS;
/** The end of a call at another instance reaches Redis within this time of its answer, if Redis is not busy for longer. */
const ENDS_ARRIVE_MS = 50;

type Answer = Admission | "away" | "rebuilding" | "stale";

/** `sent` is called when it is on its way to Redis. */
interface SentSettlement extends Settlement {
  readonly sent: () => void;
}

/** The limits of several instances in one Redis, and a share of them in this process while it is away. */
export class RedisLimits implements Limits {
  readonly kind = "redis";
  readonly #options: RedisLimitsOptions;
  readonly #now: () => number;
  /** This instance's own parts; the only state in use while Redis is away. */
  readonly #counters: Counters;
  /** Totals requested by this generation, and when. An older generation accepts any total, so old requests are dropped. */
  readonly #requested = new Map<string, number>();
  readonly #updates: PendingUpdates;
  readonly #waits = new ReleaseWaits();
  readonly #link: Link;
  readonly #previousProcess: PreviousProcess;
  readonly #instances: Instances;
  readonly #admissions: Batcher<AdmitCall, Answer>;
  readonly #settlements: Batcher<SentSettlement, boolean>;
  readonly #outages: OutageCounts;

  readonly #pendingOf = (entity: string, window: string): Nanos =>
    this.#counters.pendingOf(entity, window);

  constructor(options: RedisLimitsOptions) {
    const { redis, prefix } = options;
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#counters = new Counters(this.#now);
    this.#outages = new OutageCounts(() => this.#counters.reapedLeases());
    this.#updates = new PendingUpdates(this.#counters, this.#now);
    this.#link = new Link({
      ...options,
      ownParts: () => {
        this.#requested.clear();
        return this.#updates.take();
      },
      onJoined: () => this.#joined(),
      onAway: (reason) => this.#wentAway(reason),
      onReaped: (leases) => this.#outages.reaped(leases),
      onMoved: (moved) => {
        for (const { entity, leased, windows } of moved.map(readMoved)) {
          this.#counters.recordSnapshot(entity, leased, windows);
        }
      },
    });
    this.#previousProcess = new PreviousProcess({
      redis,
      prefix,
      link: this.#link,
      counters: this.#counters,
    });
    this.#instances = new Instances({ ...options, link: this.#link });
    const endOfTurn = (work: () => void) => atEndOfTurn(redis, work);
    this.#admissions = new Batcher(
      (calls) => this.#sendAdmits(calls),
      endOfTurn,
    );
    this.#settlements = new Batcher(
      (calls) => this.#sendSettlements(calls),
      endOfTurn,
    );
  }

  mode(): LimitsMode {
    return this.#outages.away ? "redis_away" : "redis";
  }

  counts(): LimitCounts {
    return {
      ...this.#outages.sums(),
      instances: this.#link.instances().length,
    };
  }

  async admit(call: AdmitCall): Promise<Admission> {
    const latest = performance.now() + MAX_ADMIT_MS;
    let mayRetry = true;
    for (;;) {
      const state = this.#link.state();
      if (state === "away" || state === "closed") {
        return this.#admitAway(call);
      }
      if (state !== "ready") {
        await this.#link.settled();
        continue;
      }
      if (performance.now() > latest) {
        this.#link.giveUp("the limits could not be rebuilt in time");
      }
      const answer = await this.#admissions.send(call);
      if (answer === "away") {
        this.#updates.over(call.callId);
      } else if (answer === "rebuilding") {
        await sleep(REBUILD_POLL_MS);
      } else if (answer !== "stale") {
        mayRetry &&= performance.now() + ENDS_ARRIVE_MS < latest;
        if (!mayRetry || !this.#mayBeFreeSoon(answer)) {
          return this.#admission(call, answer);
        }
        mayRetry = false;
        await this.#waits.wait(answer.entity, ENDS_ARRIVE_MS);
      }
    }
  }

  async look(
    entities: readonly LimitedEntity[],
  ): Promise<readonly LimitState[]> {
    await this.#link.settled();
    const names = entities.map(({ entity }) => entity);
    const reply = this.#link.open()
      ? await this.#link.tryRun("look", names)
      : null;
    return reply === null || reply[0] === STALE
      ? this.#counters.look(entities)
      : readLook(reply, entities);
  }

  async settle(call: Settlement): Promise<void> {
    const freed = this.#counters.settle(call);
    const { promise: isSent, resolve: sent } = Promise.withResolvers<void>();
    await Promise.race([isSent, this.#settle({ ...call, sent }, freed)]);
  }

  async #settle(call: SentSettlement, freed: readonly string[]): Promise<void> {
    if (await this.#settlements.send(call)) {
      this.#updates.ended(call.callId);
      return this.#waits.released(freed);
    }
    // Sent when the link rejoins; if it is joining now, the caller waits for it so that the next call sees this one.
    this.#updates.over(call.callId);
    for (const part of call.pending) {
      this.#updates.changed(part);
    }
    await this.#link.settled();
    this.#waits.released(freed);
  }

  async renew(callIds: readonly string[]): Promise<void> {
    this.#counters.renew(callIds);
    const longAgo = performance.now() - KEEP_REQUESTED_MS;
    for (const [name, since] of this.#requested) {
      if (since < longAgo) {
        this.#requested.delete(name);
      }
    }
    for (const batch of batches(callIds)) {
      if (!this.#link.open()) {
        return;
      }
      const reply = await this.#link.tryRun("renew", [
        String(LEASE_MS),
        ...batch,
      ]);
      if (reply === null || reply[0] === STALE) {
        return;
      }
      this.#outages.reaped(numberAt(reply, 1));
      const gone = reply
        .slice(2)
        .map((index) => this.#counters.held(batch[Number(index)] ?? ""));
      for (const args of partsArguments(
        [],
        [],
        gone.filter((call) => call !== undefined),
        this.#now(),
      )) {
        await this.#link.tryRun("parts", args);
      }
    }
  }

  async assign(
    parts: readonly CounterParts[],
    source: "ledger" | "last known" = "ledger",
  ): Promise<void> {
    const lastKnown = source === "last known";
    this.#counters.assign(parts, lastKnown);
    const creation = (counter: CounterParts): Creation => {
      if (lastKnown) {
        return "k";
      }
      return this.#requested.has(nameOf(counter)) ? "1" : "0";
    };
    const sent = lastKnown
      ? parts.map((part) => this.#counters.newest(part))
      : parts;
    const calls = this.#link.open() ? assignArguments(sent, creation) : [];
    const replies = await Promise.all(
      calls.map((args) => this.#link.tryRun("assign", args)),
    );
    if (
      calls.length > 0 &&
      replies.every((reply) => reply !== null && reply[0] !== STALE)
    ) {
      return;
    }
    for (const part of parts) {
      this.#updates.changed(part);
    }
    await this.#link.settled();
  }

  async forgetTotals(): Promise<void> {
    await this.#link.settled();
    if (!this.#link.restart()) {
      // Without Redis this instance's own totals are in use.
      this.#counters.forgetTotals();
    }
    await this.#link.settled();
  }

  remember(parts: readonly CounterParts[]): void {
    this.#counters.assign(parts, false);
  }

  lastKnown(entity: string, window: string): LastKnown | null {
    return this.#counters.lastKnown(entity, window);
  }

  instances(): Promise<readonly InstanceState[]> {
    return this.#instances.list();
  }

  forgetInstance(gone: string): Promise<void> {
    return this.#instances.forget(gone);
  }

  previousProcessDrained(): void {
    this.#previousProcess.drained();
  }

  released(entity: string, ms: number): Promise<void> {
    return this.#waits.wait(entity, ms);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  #joined(): void {
    this.#outages.arrived();
    this.#updates.arrived();
    this.#previousProcess.joined();
    if (this.#outages.away) {
      this.#outages.ended();
      this.#counters.changeEpoch(null);
      this.#options.onBack();
    }
  }

  #wentAway(reason: string): void {
    this.#outages.started();
    this.#updates.wentAway();
    const seen = this.#link.instances().length;
    const instances = () => Math.max(seen, this.#options.leastInstances());
    this.#counters.changeEpoch(createShare(instances, this.#now));
    this.#options.onAway(reason);
  }

  async #sendAdmits(calls: readonly AdmitCall[]): Promise<readonly Answer[]> {
    const batch = admitBatch(calls);
    const reply = await this.#link.tryRun("admit", batch.args);
    if (reply === null) {
      return calls.map(() => "away");
    }
    if (reply[0] === REBUILDING) {
      return calls.map(() => "rebuilding");
    }
    if (reply[0] === STALE) {
      return calls.map(() => "stale");
    }
    this.#outages.reaped(numberAt(reply, 1));
    return readAdmissions(reply, batch);
  }

  /** Whether a call that has ended at another instance may still hold a slot or tokens. */
  #mayBeFreeSoon(
    answer: Admission,
  ): answer is Extract<Admission, { kind: "rate_limited" }> {
    return (
      answer.kind === "rate_limited" &&
      answer.limit !== "requests" &&
      this.#link.instances().length > 1
    );
  }

  #admission(call: AdmitCall, answer: Admission): Admission {
    if (answer.kind === "admitted") {
      this.#counters.adopt(call);
      if (call.mayLower === true) {
        this.#waits.released(call.entities.map(({ entity }) => entity));
      }
    }
    if (answer.kind === "totals_missing") {
      for (const counter of answer.counters) {
        this.#requested.set(nameOf(counter), performance.now());
      }
    }
    return answer;
  }

  #admitAway(call: AdmitCall): Admission {
    if (this.#options.failClosed) {
      this.#outages.refused();
      return { kind: "unavailable" };
    }
    this.#outages.served();
    return this.#counters.admit(call);
  }

  /** For each, whether it has arrived. */
  async #sendSettlements(
    calls: readonly SentSettlement[],
  ): Promise<readonly boolean[]> {
    if (!this.#link.open()) {
      return calls.map(() => false);
    }
    const answer = this.#link.tryRun(
      "settle",
      settleArguments(calls, this.#pendingOf),
    );
    for (const { callId, sent } of calls) {
      this.#updates.ending(callId);
      sent();
    }
    const reply = await answer;
    const arrived = reply !== null && reply[0] !== STALE;
    return calls.map(() => arrived);
  }
}
