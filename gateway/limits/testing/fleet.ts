import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Admission, CounterParts } from "../limits.ts";
import { createLimits } from "../create.ts";
import { type Limits } from "../limits.ts";
import { callOf, payer } from "./bench.ts";
import type { TestRedis } from "./redis-server.ts";
import { admitWaiting } from "../waiting.ts";
import {
  waitForArrivals,
  waitForBeats,
  waitForMode,
} from "./wait-for-limits.ts";

/** Gateways of a test on one Redis and one ledger, with continuous calls. */
export interface Fleet {
  readonly stores: readonly Limits[];
  /** Starts calls on every instance until `stop`: each costs the same, of its key and of the team. */
  run(): void;
  /** Ends the calls, drains, and waits until all instances are back in Redis. */
  stop(): Promise<void>;
  readonly seen: Observations;
  /** Spend of a payer in the ledger or on its way there. */
  spent(entity: string): number;
  readonly budgets: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

interface Observations {
  readonly answers: Map<Admission["kind"], number>;
  /** `budget_exceeded` for a payer with money left. */
  phantoms: number;
}

export interface FleetOptions {
  readonly instances: number;
  /** In calls. */
  readonly budgets: Readonly<Record<string, number>>;
  readonly cost: number;
  readonly callers: number;
  readonly deadlineMs?: number;
  readonly prefix?: string;
}

const DATABASE_MS = 5;
const DRAIN_EVERY_MS = 60;

export async function startFleet(
  server: TestRedis,
  options: FleetOptions,
): Promise<Fleet> {
  const { instances, cost, callers, prefix = "fleet:" } = options;
  const budgets = new Map(
    Object.entries(options.budgets).map(([entity, calls]) => [
      entity,
      calls * cost,
    ]),
  );
  /** The database: totals with versions. Calls in `underWay` were paid and are not in it yet. */
  const ledger = new Map<string, { total: number; version: number }>();
  const underWay = new Map<string, number>();
  const seen: Observations = { answers: new Map(), phantoms: 0 };
  const members = await Promise.all(
    Array.from({ length: instances }, (_, i) => member(i)),
  );
  await waitForBeats(instances, members[0]?.redis, prefix);
  // Each must have discovered the others.
  await sleep(50);

  async function member(i: number) {
    const redis = await server.connected();
    const store = createLimits({
      redis,
      prefix,
      instance: `gateway-${i}`,
      minInstances: instances,
      beatMs: 10,
      discoverMs: 50,
      deadlineMs: options.deadlineMs ?? 1_000,
    });
    await waitForArrivals(1, store);
    return {
      redis,
      store,
      pending: new Map<string, number>(),
      work: [] as Promise<void>[],
      running: false,
      drains: Promise.resolve(),
    };
  }
  type Member = (typeof members)[number];

  function spent(entity: string): number {
    return (ledger.get(entity)?.total ?? 0) + (underWay.get(entity) ?? 0);
  }

  /** One reader or writer of totals at a time in each instance, as in a gateway. */
  function inTurn<T>(one: Member, work: () => Promise<T>): Promise<T> {
    const turn = one.drains.then(work);
    one.drains = turn.then(() => undefined);
    return turn;
  }

  function partsOf(one: Member, entity: string): CounterParts {
    const { total, version } = ledger.get(entity) ?? { total: 0, version: 0 };
    return {
      entity,
      window: "all",
      total,
      version,
      pending: one.pending.get(entity) ?? 0,
    };
  }

  const drain = (one: Member) =>
    inTurn(one, async () => {
      const batch = [...one.pending].filter(([, sum]) => sum > 0);
      if (batch.length === 0) {
        return;
      }
      await sleep(DATABASE_MS);
      const committed = batch.map(([entity, sum]) => {
        const before = ledger.get(entity) ?? { total: 0, version: 0 };
        ledger.set(entity, {
          total: before.total + sum,
          version: before.version + 1,
        });
        underWay.set(entity, (underWay.get(entity) ?? 0) - sum);
        return ledger.get(entity) ?? before;
      });
      // The database answers late: others may read the new totals before this instance reports them.
      await sleep(DATABASE_MS);
      const parts = batch.map(([entity, sum], i) => {
        one.pending.set(entity, (one.pending.get(entity) ?? 0) - sum);
        const { total, version } = committed[i] ?? { total: 0, version: 0 };
        return {
          entity,
          window: "all",
          total,
          version,
          pending: one.pending.get(entity) ?? 0,
        };
      });
      await one.store.assign(parts);
    });

  const loadTotals = (one: Member, entities: readonly string[]) =>
    inTurn(one, async () => {
      await sleep(DATABASE_MS);
      const read = entities.map(
        (entity) => ledger.get(entity) ?? { total: 0, version: 0 },
      );
      await sleep(DATABASE_MS);
      await one.store.assign(
        entities.map((entity, i) => ({ ...partsOf(one, entity), ...read[i] })),
      );
    });

  async function makeCall(
    one: Member,
    entities: readonly string[],
  ): Promise<void> {
    const payers = entities.map((entity) =>
      payer(entity, { budget: budgets.get(entity) ?? null, parallel: 1_000 }),
    );
    const call = callOf(payers, { estimate: cost + 1 });
    let admission = await admitWaiting(one.store, call, { maxWaitMs: 200 });
    for (
      let loads = 0;
      admission.kind === "totals_missing" && loads < 5;
      loads++
    ) {
      await loadTotals(
        one,
        admission.counters.map(({ entity }) => entity),
      );
      admission = await admitWaiting(one.store, call, { maxWaitMs: 200 });
    }
    seen.answers.set(
      admission.kind,
      (seen.answers.get(admission.kind) ?? 0) + 1,
    );
    if (
      admission.kind === "budget_exceeded" &&
      spent(admission.entity) < admission.budget
    ) {
      seen.phantoms++;
    }
    if (admission.kind !== "admitted") {
      return void (await sleep(20));
    }
    await sleep(2 + Math.random() * 10);
    for (const entity of entities) {
      underWay.set(entity, (underWay.get(entity) ?? 0) + cost);
      one.pending.set(entity, (one.pending.get(entity) ?? 0) + cost);
    }
    await one.store.settle({
      callId: call.callId,
      tokens: 0,
      pending: entities.map((entity) => ({
        entity,
        window: "all",
        pending: one.pending.get(entity) ?? 0,
      })),
    });
  }

  function run(): void {
    const keys = [...budgets.keys()].filter((entity) =>
      entity.startsWith("key:"),
    );
    for (const one of members) {
      one.running = true;
      for (let i = 0; i < callers; i++) {
        one.work.push(
          (async () => {
            for (let n = i; one.running; n++) {
              await makeCall(one, [keys[n % keys.length] ?? "", "team:t"]);
            }
          })(),
        );
      }
      one.work.push(
        (async () => {
          while (one.running) {
            await sleep(DRAIN_EVERY_MS);
            await drain(one);
          }
        })(),
      );
    }
  }

  async function stop(): Promise<void> {
    for (const one of members) {
      one.running = false;
    }
    await Promise.all(members.flatMap(({ work }) => work.splice(0)));
    await waitForMode("redis", ...members.map(({ store }) => store));
    for (const one of members) {
      await drain(one);
    }
  }

  return {
    stores: members.map(({ store }) => store),
    run,
    stop,
    seen,
    spent,
    budgets,
    async close() {
      for (const one of members) {
        one.running = false;
      }
      await Promise.all(members.flatMap(({ work }) => work));
      await Promise.all(members.map(({ store }) => store.close()));
    },
  };
}

/** Calls in flight and pending spend in Redis: none once everything is settled and drained. */
export async function heldInRedis(
  redis: Redis,
  prefix = "fleet:",
): Promise<readonly string[]> {
  const answer = await redis.eval(
    `local found = {}
     for id in pairs(redis.call('HGETALL', ARGV[1] .. 'calls')) do found[#found + 1] = 'call' end
     if redis.call('ZCARD', ARGV[1] .. 'leases') > 0 then found[#found + 1] = 'leases' end
     for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'entity:*')) do
       local fields = redis.call('HGETALL', key)
       for i = 1, #fields, 2 do
         local packed = cmsgpack.unpack(fields[i + 1])
         if fields[i] == 'account' then
           if packed[1] ~= 0 or packed[2] ~= 0 or packed[3] ~= 0 then
             found[#found + 1] = key .. ' leased ' .. packed[1] .. ' holders ' .. packed[2] .. ' slots ' .. packed[3]
           end
         elseif #packed > 6 or packed[5] ~= 0 or packed[6] ~= 0 then
           found[#found + 1] = key .. ' ' .. fields[i] .. ' pending ' .. packed[5] .. ' unsure ' .. packed[6]
         end
       end
     end
     return found`,
    0,
    prefix,
  );
  return answer as readonly string[];
}
