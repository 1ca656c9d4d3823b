import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import {
  LEASE_MS,
  type AdmitCall,
  type Admission,
  type CounterParts,
  type LimitedEntity,
  type LimitState,
  type Settlement,
} from "./limits.ts";
import { atEndOfTurn } from "../cache/redis.ts";
import { admitBatch, readAdmissions } from "./admit-wire.ts";
import { createCounters } from "./counters.ts";
import { createFormerLife } from "./former-life.ts";
import { createFreedWaits } from "./freed.ts";
import { createGathered } from "./gathered.ts";
import type { Limits } from "./limits.ts";
import { createInstances } from "./instances.ts";
import { createLink, RedisAway } from "./redis-link.ts";
import { numberAt, REBUILDING, STALE, type Reply } from "./scripts.ts";
import { createShare } from "./share.ts";
import { createUnsent, nameOf } from "./unsent.ts";
import {
  assignArguments,
  batches,
  partsArguments,
  readLook,
  readMoved,
  settleArguments,
  type Creation,
} from "./wire.ts";

/** {@link LimitsOptions} with nothing left out. */
export interface RedisLimitsOptions {
  /** A client that fails at once while it is away and never sends a command again (`connectRedis`). Not closed here. */
  readonly redis: Redis;
  readonly instance: string;
  readonly failClosed: boolean;
  readonly prefix: string;
  readonly now: (() => number) | null;
  readonly leastInstances: () => number;
  readonly deadlineMs: number;
  readonly beatMs: number;
  readonly rebuildMs: number;
  readonly discoverMs: number;
  readonly onAway: (reason: string) => void;
  readonly onBack: () => void;
}

const REBUILD_POLL_MS = 20;
const LONGEST_ADMIT_MS = 5_000;
const ASKED_FOR_MS = 60_000;

/** The limits of several instances in one Redis, and a share of them in this process while it is away. */
export function createRedisLimits(options: RedisLimitsOptions): Limits {
  const { failClosed, prefix } = options;
  const now = options.now ?? Date.now;
  /** This instance's own parts, always; all that counts while Redis is away. */
  const counters = createCounters(now);
  /** Totals that this generation asked for, and when. An older generation takes any total: what was asked long ago may go. */
  const asked = new Map<string, number>();
  const unsent = createUnsent(counters, now);
  const waits = createFreedWaits();
  let away = false;
  let reapedBefore = 0;
  const counts = {
    outages: 0,
    arrivals: 0,
    reapedLeases: 0,
    servedAway: 0,
    refusedAway: 0,
  };

  const link = createLink({
    ...options,
    ownParts() {
      asked.clear();
      return unsent.take();
    },
    onJoined() {
      counts.arrivals++;
      formerLife.joined();
      if (away) {
        away = false;
        counts.reapedLeases += counters.reapedLeases() - reapedBefore;
        counters.turnOver(null);
        options.onBack();
      }
    },
    onAway(reason) {
      away = true;
      reapedBefore = counters.reapedLeases();
      counts.outages++;
      const seen = link.instances().length;
      const instances = () => Math.max(seen, options.leastInstances());
      counters.turnOver(createShare(instances, now));
      options.onAway(reason);
    },
    onReaped: (leases) => {
      counts.reapedLeases += leases;
    },
    onMoved(moved) {
      for (const { entity, leased, windows } of moved.map(readMoved)) {
        counters.sight(entity, leased, windows);
      }
    },
  });

  const formerLife = createFormerLife({
    redis: options.redis,
    prefix,
    link: () => link,
    counters,
  });

  const instances = createInstances({ ...options, link });

  async function admit(call: AdmitCall): Promise<Admission> {
    const latest = performance.now() + LONGEST_ADMIT_MS;
    for (;;) {
      const state = link.state();
      if (state === "away" || state === "closed") {
        return admitAway(call);
      }
      if (state !== "ready") {
        await link.settled();
        continue;
      }
      if (performance.now() > latest) {
        link.giveUp("the limits could not be rebuilt in time");
      }
      const answer = await admissions.send(call);
      if (answer === "away") {
        unsent.over(call.callId);
      } else if (answer === "rebuilding") {
        await sleep(REBUILD_POLL_MS);
      } else if (answer !== "stale") {
        return admission(call, answer);
      }
    }
  }

  const endOfTurn = (work: () => void) => atEndOfTurn(options.redis, work);

  const admissions = createGathered(sendAdmits, endOfTurn);

  async function sendAdmits(
    calls: readonly AdmitCall[],
  ): Promise<readonly (Admission | "away" | "rebuilding" | "stale")[]> {
    const batch = admitBatch(calls);
    const reply = await tried("admit", batch.args);
    if (reply === null) {
      return calls.map(() => "away");
    }
    if (reply[0] === REBUILDING) {
      return calls.map(() => "rebuilding");
    }
    if (reply[0] === STALE) {
      return calls.map(() => "stale");
    }
    counts.reapedLeases += numberAt(reply, 1);
    return readAdmissions(reply, batch);
  }

  function admission(call: AdmitCall, answer: Admission): Admission {
    if (answer.kind === "admitted") {
      counters.adopt(call);
    }
    if (answer.kind === "totals_missing") {
      for (const counter of answer.counters) {
        asked.set(nameOf(counter), performance.now());
      }
    }
    return answer;
  }

  function admitAway(call: AdmitCall): Admission {
    if (failClosed) {
      counts.refusedAway++;
      return { kind: "unavailable" };
    }
    counts.servedAway++;
    return counters.admit(call);
  }

  /** null: Redis is away, and whether the script ran is not known. */
  async function tried(
    script: Parameters<typeof link.run>[0],
    args: readonly string[],
  ): Promise<Reply | null> {
    try {
      return await link.run(script, args);
    } catch (error) {
      if (error instanceof RedisAway) {
        return null;
      }
      throw error;
    }
  }

  async function look(
    entities: readonly LimitedEntity[],
  ): Promise<readonly LimitState[]> {
    await link.settled();
    const names = entities.map(({ entity }) => entity);
    const reply = link.open() ? await tried("look", names) : null;
    return reply === null || reply[0] === STALE
      ? counters.look(entities)
      : readLook(reply, entities);
  }

  const settlements = createGathered(sendSettlements, endOfTurn);

  /** For each, whether it has arrived. */
  async function sendSettlements(
    calls: readonly Settlement[],
  ): Promise<readonly boolean[]> {
    const reply = link.open()
      ? await tried("settle", settleArguments(calls, counters.pendingOf))
      : null;
    const arrived = reply !== null && reply[0] !== STALE;
    return calls.map(() => arrived);
  }

  async function settle(call: Settlement): Promise<void> {
    const freed = counters.settle(call);
    if (await settlements.send(call)) {
      return waits.freed(freed);
    }
    // The next arrival carries it; where one is under way the caller waits for it, so that the next call sees this one.
    unsent.over(call.callId);
    for (const part of call.pending) {
      unsent.changed(part);
    }
    await link.settled();
    waits.freed(freed);
  }

  async function assign(
    parts: readonly CounterParts[],
    source: "ledger" | "last known" = "ledger",
  ): Promise<void> {
    const lastKnown = source === "last known";
    counters.assign(parts, lastKnown);
    const creation = (counter: CounterParts): Creation => {
      if (lastKnown) {
        return "k";
      }
      return asked.has(nameOf(counter)) ? "1" : "0";
    };
    const sent = lastKnown ? parts.map(counters.newest) : parts;
    const calls = link.open() ? assignArguments(sent, creation) : [];
    const replies = await Promise.all(
      calls.map((args) => tried("assign", args)),
    );
    if (
      calls.length > 0 &&
      replies.every((reply) => reply !== null && reply[0] !== STALE)
    ) {
      return;
    }
    for (const part of parts) {
      unsent.changed(part);
    }
    await link.settled();
  }

  async function renew(callIds: readonly string[]): Promise<void> {
    counters.renew(callIds);
    const longAgo = performance.now() - ASKED_FOR_MS;
    for (const [name, since] of asked) {
      if (since < longAgo) {
        asked.delete(name);
      }
    }
    for (const batch of batches(callIds)) {
      if (!link.open()) {
        return;
      }
      const reply = await tried("renew", [String(LEASE_MS), ...batch]);
      if (reply === null || reply[0] === STALE) {
        return;
      }
      counts.reapedLeases += numberAt(reply, 1);
      const gone = reply
        .slice(2)
        .map((index) => counters.held(batch[Number(index)] ?? ""));
      for (const args of partsArguments(
        [],
        [],
        gone.filter((call) => call !== undefined),
        now(),
      )) {
        await tried("parts", args);
      }
    }
  }

  return {
    kind: "redis",
    mode: () => (away ? "redis_away" : "redis"),
    counts: () => ({
      ...counts,
      reapedLeases:
        counts.reapedLeases +
        (away ? counters.reapedLeases() - reapedBefore : 0),
    }),
    admit,
    look,
    settle,
    renew,
    assign,
    remember: (parts) => counters.assign(parts, false),
    lastKnown: counters.lastKnown,
    instances: instances.list,
    forgetInstance: instances.forget,
    formerLifeDrained: formerLife.drained,
    freed: waits.wait,
    close: () => link.close(),
  };
}
