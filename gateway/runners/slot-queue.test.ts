import fc from "fast-check";
import { expect, test } from "vitest";
import { OLDEST_EVERY, type Place } from "./line.ts";
import type { SlotLeases } from "./slot-leases.ts";
import {
  QueueFull,
  QueueTimeout,
  SlotQueue,
  type Slot,
  type WaitOptions,
} from "./slot-queue.ts";

const INTERACTIVE: Place = { batch: false, order: 0 };
const BATCH: Place = { batch: true, order: 0 };
const NEVER = new AbortController().signal;
const PATIENT: WaitOptions = {
  queueLimit: 1_000,
  maxWaitMs: 60_000,
  signal: NEVER,
};

function queueOf(limit: number, leases: SlotLeases | null = null): SlotQueue {
  const queue = new SlotQueue("runner", leases);
  queue.limit = limit;
  return queue;
}

/** Calls in the order in which they got their slot; each ends when `next` is called. */
class Calls {
  readonly served: string[] = [];
  readonly #running: Slot[] = [];
  readonly #queue: SlotQueue;
  constructor(queue: SlotQueue) {
    this.#queue = queue;
  }

  async occupy(): Promise<void> {
    const slot = await this.#queue.claim();
    expect(slot).not.toBeNull();
    this.#running.push(slot as Slot);
  }

  wait(name: string, place: Place, options: Partial<WaitOptions> = {}) {
    const served = this.#queue
      .wait(place, { ...PATIENT, ...options })
      .then((slot) => {
        this.served.push(name);
        this.#running.push(slot);
      });
    // A test may end while calls wait; their time is over during another one.
    served.catch(() => undefined);
    return served;
  }

  async next(): Promise<void> {
    this.#running.shift()?.release();
    await turn();
  }
}

/** Lets all promises continue. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("interactive calls come before batch calls, each first in, first out, a lower number before a higher one", async () => {
  const calls = new Calls(queueOf(1));
  await calls.occupy();
  void calls.wait("batch 1", BATCH);
  void calls.wait("second", { batch: false, order: 7 });
  void calls.wait("first", INTERACTIVE);
  void calls.wait("batch 2", BATCH);
  for (let turns = 0; turns < 4; turns++) {
    await calls.next();
  }
  expect(calls.served).toEqual(["first", "second", "batch 1", "batch 2"]);
});

test("a batch call is served although interactive calls never end", async () => {
  const calls = new Calls(queueOf(1));
  await calls.occupy();
  void calls.wait("batch", BATCH);
  void calls.wait("interactive", INTERACTIVE);
  for (let turns = 0; turns < OLDEST_EVERY; turns++) {
    void calls.wait("interactive", INTERACTIVE);
    await calls.next();
  }
  expect(calls.served).toContain("batch");
});

test("a full queue, a wait that is too long and a cancelled call are told apart, and none of them keeps a place", async () => {
  const queue = queueOf(1);
  const calls = new Calls(queue);
  await calls.occupy();
  expect(await queue.claim()).toBeNull();
  const aborter = new AbortController();
  const left = calls.wait("left", INTERACTIVE, { signal: aborter.signal });
  await expect(
    calls.wait("too many", INTERACTIVE, { queueLimit: 1 }),
  ).rejects.toBeInstanceOf(QueueFull);
  await expect(
    calls.wait("late", INTERACTIVE, { maxWaitMs: 1 }),
  ).rejects.toBeInstanceOf(QueueTimeout);
  aborter.abort(new Error("the client has left"));
  await expect(left).rejects.toThrow("the client has left");
  expect([queue.waiting, queue.used]).toEqual([0, 1]);
  await calls.next();
  expect([queue.waiting, queue.used, queue.hasFree]).toEqual([0, 0, true]);
});

test("a slot is released once, and a raised limit serves those that wait", async () => {
  const queue = queueOf(1);
  const slot = await queue.claim();
  slot?.release();
  slot?.release();
  expect(queue.used).toBe(0);
  const calls = new Calls(queue);
  await calls.occupy();
  void calls.wait("a", INTERACTIVE);
  void calls.wait("b", INTERACTIVE);
  queue.limit = 3;
  await turn();
  expect([calls.served, queue.used]).toEqual([["a", "b"], 3]);
});

/** Slots that another gateway holds, too. */
function sharedSlots(limit: number) {
  const shared = { held: 0, most: 0 };
  const leases: SlotLeases = {
    async take() {
      await turn();
      if (shared.held >= limit) {
        return null;
      }
      shared.held++;
      shared.most = Math.max(shared.most, shared.held);
      return { release: () => void shared.held-- };
    },
    stop: () => undefined,
  };
  return { shared, leases };
}

test("two gateways never use more slots together than there are, and a slot of the other one is found free", async () => {
  const { shared, leases } = sharedSlots(1);
  const [here, there] = [queueOf(1, leases), queueOf(1, leases)];
  const other = await there.claim();
  expect(await here.claim()).toBeNull();
  const calls = new Calls(here);
  const waiting = calls.wait("a", INTERACTIVE);
  await turn();
  expect(calls.served).toEqual([]);
  other?.release();
  await waiting;
  expect([calls.served, shared]).toEqual([["a"], { held: 1, most: 1 }]);
});

type Step =
  | { readonly do: "come"; readonly batch: boolean; readonly order: number }
  | { readonly do: "leave"; readonly which: number }
  | { readonly do: "end"; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("come" as const),
    batch: fc.boolean(),
    order: fc.nat(2),
  }),
  fc.record({ do: fc.constant("leave" as const), which: fc.nat() }),
  fc.record({ do: fc.constant("end" as const), which: fc.nat() }),
);

interface Caller extends Place {
  readonly aborter: AbortController;
  readonly arrival: number;
  state: "waiting" | "running" | "left" | "ended";
  slot: Slot | null;
  /** Calls that were served while it waited. */
  passedBy: number;
}

function isEarlierEqual(one: Caller, other: Caller): boolean {
  return (
    one !== other &&
    one.batch === other.batch &&
    one.order === other.order &&
    one.arrival < other.arrival
  );
}

test("a call in line is served after another one asked in vain for a slot that a second gateway held", async () => {
  const { leases } = sharedSlots(1);
  const [here, there] = [queueOf(1, leases), queueOf(1, leases)];
  const other = await there.claim();
  const asking = here.claim();
  const calls = new Calls(here);
  const served = calls.wait("in line", INTERACTIVE);
  expect(await asking).toBeNull();
  other?.release();
  await served;
  expect(calls.served).toEqual(["in line"]);
});

test("model: slots are never exceeded or idle while calls wait, equals keep their order, and none waits forever", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(step, { maxLength: 60 }),
      async (limit, steps) => {
        const queue = queueOf(limit);
        const callers: Caller[] = [];
        const unfair: Caller[] = [];
        const those = (state: Caller["state"]) =>
          callers.filter((caller) => caller.state === state);
        for (const each of steps) {
          const running = those("running");
          const waiting = those("waiting");
          if (each.do === "come") {
            const caller: Caller = {
              batch: each.batch,
              order: each.order,
              arrival: callers.length,
              aborter: new AbortController(),
              state: "waiting",
              slot: null,
              passedBy: 0,
            };
            const { signal } = caller.aborter;
            queue.wait(caller, { ...PATIENT, signal }).then(
              (slot) => {
                for (const other of those("waiting")) {
                  other.passedBy++;
                  if (isEarlierEqual(other, caller)) {
                    unfair.push(other);
                  }
                }
                caller.state = "running";
                caller.slot = slot;
              },
              () => undefined,
            );
            callers.push(caller);
          } else if (each.do === "leave" && waiting.length > 0) {
            const caller = waiting[each.which % waiting.length] as Caller;
            caller.state = "left";
            caller.aborter.abort(new Error("left"));
          } else if (each.do === "end" && running.length > 0) {
            const caller = running[each.which % running.length] as Caller;
            caller.state = "ended";
            caller.slot?.release();
          }
          await turn();
          const [now, still] = [
            those("running").length,
            those("waiting").length,
          ];
          expect(unfair).toEqual([]);
          expect(queue.used).toBe(now);
          expect(queue.waiting).toBe(still);
          expect(now).toBe(Math.min(limit, now + still));
          for (const { passedBy, arrival } of those("waiting")) {
            expect(passedBy).toBeLessThan(OLDEST_EVERY * (arrival + 1));
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});
