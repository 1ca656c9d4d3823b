import type {
  CounterParts,
  LimitedEntity,
  LimitState,
  Settlement,
} from "./limits.ts";
import type { Nanos } from "../pricing/money.ts";
import type { ReservedCall } from "./reservations.ts";
import type { PendingCounter } from "./counters.ts";
import { limitState } from "./rates.ts";
import { numberAt, type Reply } from "./scripts.ts";
import type { SnapshotWindows } from "./accounts.ts";

/** Maximum items in one script call: Redis serves no other client during a script. */
const BATCH = 500;

/**
 * Pending sums at the time of sending: a drain may have lowered one since the call was settled. Those of payers that several
 * calls share are sent once.
 */
export function settleArguments(
  calls: readonly Settlement[],
  pendingOf: (entity: string, window: string) => Nanos,
): string[] {
  const sums: string[] = [];
  const ids: string[] = [];
  const sent = new Set<string>();
  for (const { callId, tokens, pending } of calls) {
    for (const { entity, window } of pending) {
      const name = `${entity}|${window}`;
      if (sent.has(name)) {
        continue;
      }
      sent.add(name);
      sums.push(entity, window, String(pendingOf(entity, window)));
    }
    ids.push(callId, String(tokens));
  }
  return [String(sent.size), ...sums, ...ids];
}

/**
 * How to treat a total that Redis does not know: set it as requested, set it once the generation is old enough, never set
 * it, set it as the last known one.
 */
export type Creation = "1" | "0" | "-" | "k";

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

/** The complete state of an instance, in as many calls of the script as needed. */
export function partsArguments(
  over: readonly string[],
  pending: readonly PendingCounter[],
  calls: readonly ReservedCall[],
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
    for (const part of pendingNow) {
      args.push(part.entity, part.window, String(part.pending));
    }
    for (const call of calls.slice(at, at + BATCH)) {
      args.push(
        call.callId,
        String(call.estimate),
        String(call.expires - now),
        String(call.accounts.length),
      );
      for (const [i, account] of call.accounts.entries()) {
        args.push(account.entity, String(call.takes[i] ?? 0));
      }
    }
    all.push(args);
  }
  return all;
}

/** Spend and leases of an entity in Redis. */
interface Moved {
  readonly entity: string;
  readonly leased: Nanos;
  readonly windows: SnapshotWindows;
}

/** Reads one entity of the reply of beat.lua. */
export function readMoved(reply: Reply): Moved {
  const [entity, , ...windows] = reply;
  return {
    entity: String(entity),
    leased: numberAt(reply, 1),
    windows: new Map(
      windows
        .filter((window) => Array.isArray(window))
        .map((window: Reply) => [
          String(window[0]),
          {
            total: numberAt(window, 1),
            version: numberAt(window, 2),
            spend: numberAt(window, 3),
          },
        ]),
    ),
  };
}

/** Numbers for each requested entity. */
const LOOK_NUMBERS = 4;

/** Reads the reply of look.lua. */
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
