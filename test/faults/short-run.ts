import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestPostgres } from "../servers/postgres.ts";
import { hasRedisServer } from "../servers/redis.ts";
import { CAMPAIGNS, type CampaignName } from "./campaigns.ts";
import { isClean } from "./judge.ts";
import { createRandom } from "./random.ts";
import { startTestbedPostgres } from "./testbed.ts";

const ROUNDS: Readonly<
  Record<CampaignName, { readonly rounds: number; readonly outageMs: number }>
> = {
  "kill-redis": { rounds: 3, outageMs: 0 },
  "kill-memory": { rounds: 2, outageMs: 0 },
  postgres: { rounds: 1, outageMs: 1_500 },
  redis: { rounds: 1, outageMs: 2_400 },
  "sentinel-failover": { rounds: 1, outageMs: 0 },
  "database-failover": { rounds: 1, outageMs: 0 },
  "a-away": { rounds: 1, outageMs: 1_500 },
  "crowd-memory": { rounds: 1, outageMs: 0 },
  "crowd-one": { rounds: 1, outageMs: 0 },
  "crowd-three": { rounds: 1, outageMs: 0 },
  disconnect: { rounds: 1, outageMs: 0 },
  keyless: { rounds: 1, outageMs: 3_000 },
  mixed: { rounds: 1, outageMs: 0 },
};
const MIXED_MINUTES = 0.1;
const WITHOUT_REDIS: readonly CampaignName[] = [
  "kill-memory",
  "crowd-memory",
  "disconnect",
  "keyless",
];

/** In every `npm test`: the campaign with the most gateways. The others are long tests. */
export const IN_EVERY_RUN: readonly CampaignName[] = ["crowd-three"];

/** Defines a test for a short run of each campaign; `npm run test:faults` runs them for longer. */
export function testCampaigns(names: readonly CampaignName[]): void {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startTestbedPostgres();
  });
  afterAll(async () => {
    await postgres?.remove();
  });

  test.each(
    names.filter((name) => WITHOUT_REDIS.includes(name) || hasRedisServer()),
  )(
    "campaign %s finds no lost, duplicate or invented rows, no overspending and no leaks",
    async (name) => {
      const seed = Date.now() % 2 ** 31;
      const lines: string[] = [];
      const verdict = await CAMPAIGNS[name](postgres, {
        random: createRandom(seed),
        ...ROUNDS[name],
        minutes: MIXED_MINUTES,
        expireLeases: true,
        log: (line) => void lines.push(line),
      });
      expect(
        isClean(verdict),
        `seed ${seed}\n${lines.join("\n")}\n${JSON.stringify(verdict, null, 2)}`,
      ).toBe(true);
      expect(verdict.idsAtProvider).toBeGreaterThan(0);
    },
  );
}
