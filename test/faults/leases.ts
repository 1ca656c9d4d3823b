import { setTimeout as sleep } from "node:timers/promises";
import { entityOfKey, type Account, type Budget } from "./accounts.ts";
import { call, type Received } from "./calls.ts";
import { callsInRedis, endLeases, readLimits } from "./redis-limits.ts";
import type { Testbed } from "./testbed.ts";

/** The lease of a killed gateway expires after a minute, at a heartbeat of a running one. */
const LEASE_MS = 60_000;
const GONE_WITHIN_MS = LEASE_MS + 15_000;

/**
 * Reservations that remain in Redis although no call is in flight. Waits for the leases of killed gateways to expire, or
 * ends them at once with `expireLeases`; what remains then would never be released.
 */
export async function leakedInRedis(
  testbed: Testbed,
  options: { readonly expireLeases: boolean },
): Promise<readonly string[]> {
  if (testbed.redisClient === null) {
    return [];
  }
  if (options.expireLeases) {
    await endLeases(testbed);
  }
  const until =
    performance.now() + (options.expireLeases ? 5_000 : GONE_WITHIN_MS);
  while (
    (await callsInRedis(testbed)).length > 0 &&
    performance.now() < until
  ) {
    await sleep(200);
  }
  const leaked = (await callsInRedis(testbed)).map(
    (id) => `lease of call ${id}`,
  );
  for (const { entity, leased, holders, slots } of await readLimits(testbed)) {
    if (leased !== 0 || holders !== 0 || slots !== 0) {
      leaked.push(
        `${entity}: ${leased} nanos reserved by ${holders} calls, ${slots} slots taken`,
      );
    }
  }
  return leaked;
}

const MAX_PROBES = 80;
/** For keys without a budget to use up. */
const FREE_PROBES = 3;
const PROBE = {
  stream: false,
  tokens: 1,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;

/**
 * Makes sequential calls until each budget is used up. With no other call in flight, no response may report that the rest is
 * reserved or that all slots are taken. This also finds leaks in a store that cannot be inspected.
 */
export async function leakedToCallers(
  testbed: Testbed,
  accounts: readonly Account[],
  budgets: readonly Budget[],
  record: (received: Received) => void,
): Promise<readonly string[]> {
  const limited = new Set(budgets.map(({ entity }) => entity));
  const leaked: string[] = [];
  for (const account of accounts) {
    for (const { url } of testbed.gateways) {
      const probes = limited.has(entityOfKey(account.key))
        ? MAX_PROBES
        : FREE_PROBES;
      for (let probe = 0; probe < probes; probe++) {
        const received = await call(url, account, PROBE);
        record(received);
        if (["budget_held", "rate_limit_exceeded"].includes(received.end)) {
          leaked.push(`with no call in flight: ${received.message}`);
        }
        if (received.end !== "ok") {
          break;
        }
      }
    }
  }
  return leaked;
}
