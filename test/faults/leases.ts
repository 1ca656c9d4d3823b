import { setTimeout as sleep } from "node:timers/promises";
import { entityOfKey, type Account, type Budget } from "./accounts.ts";
import { call, type Told } from "./calls.ts";
import { callsInRedis, endLeases, heldInRedis } from "./redis-limits.ts";
import type { Testbed } from "./testbed.ts";

/** A lease of a gateway that was killed ends by itself after a minute, at a heartbeat of those that live. */
const LEASE_MS = 60_000;
const GONE_WITHIN_MS = LEASE_MS + 15_000;

/**
 * What is still held in Redis though no call runs. Leases of killed gateways are waited for, or, with `hurry`, their time
 * is set to be over: what then remains would have remained for ever.
 */
export async function leakedInRedis(
  testbed: Testbed,
  options: { readonly hurry: boolean },
): Promise<readonly string[]> {
  if (testbed.redis === null) {
    return [];
  }
  if (options.hurry) {
    await endLeases(testbed);
  }
  const until = performance.now() + (options.hurry ? 5_000 : GONE_WITHIN_MS);
  while (
    (await callsInRedis(testbed)).length > 0 &&
    performance.now() < until
  ) {
    await sleep(200);
  }
  const leaked = (await callsInRedis(testbed)).map(
    (id) => `the lease of call ${id}`,
  );
  for (const { entity, leased, holders, slots } of await heldInRedis(testbed)) {
    if (leased !== 0 || holders !== 0 || slots !== 0) {
      leaked.push(
        `${entity} holds ${leased} nanos of ${holders} calls, ${slots} slots`,
      );
    }
  }
  return leaked;
}

const MOST_PROBES = 80;
/** On a key without a budget there is nothing to use up. */
const FREE_PROBES = 3;
const PROBE = {
  stream: false,
  tokens: 1,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;

/**
 * Calls one after the other until each budget is used up: none may be told that calls in flight hold the rest, or that
 * all slots are taken, since none is in flight. So nothing is held in a store that cannot be looked into.
 */
export async function leakedToCallers(
  testbed: Testbed,
  accounts: readonly Account[],
  budgets: readonly Budget[],
  heard: (told: Told) => void,
): Promise<readonly string[]> {
  const limited = new Set(budgets.map(({ entity }) => entity));
  const leaked: string[] = [];
  for (const account of accounts) {
    for (const { url } of testbed.gateways) {
      const probes = limited.has(entityOfKey(account.key))
        ? MOST_PROBES
        : FREE_PROBES;
      for (let probe = 0; probe < probes; probe++) {
        const told = await call(url, account, PROBE);
        heard(told);
        if (["budget_held", "rate_limit_exceeded"].includes(told.end)) {
          leaked.push(`with nothing in flight: ${told.message}`);
        }
        if (told.end !== "ok") {
          break;
        }
      }
    }
  }
  return leaked;
}
