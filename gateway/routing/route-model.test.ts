import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import { UpstreamFailure } from "../providers/failure.ts";
import type { ModelGroup, PricedDeployment } from "./catalog.ts";
import { Cooldowns } from "./cooldowns.ts";
import { Route, type Router, type Target } from "./route.ts";
import { createObservations } from "./strategies.ts";

const ALIASES = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const MAX_CALLED = 5;
/** Longer than any pause before a retry. */
const COOLING_MS = 60_000;

/** The aliases of a gateway: for each deployment whether it cools down, and what the alias falls back to. */
interface Alias {
  readonly cooling: readonly boolean[];
  readonly fallbacks: readonly string[];
  readonly blocked: boolean;
}

const anyAlias = fc.record({
  cooling: fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }),
  fallbacks: fc.array(fc.constantFrom(...ALIASES, "unknown"), { maxLength: 4 }),
  blocked: fc.boolean(),
});
const anyWorld = fc.tuple(
  fc.array(anyAlias, {
    minLength: ALIASES.length,
    maxLength: ALIASES.length,
  }),
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom(401, 402, 404, 429, 498, 503),
);

function groupOf(alias: string, { cooling, blocked }: Alias): ModelGroup {
  const deployments = cooling.map(
    (_, at) =>
      ({
        id: `${alias}${at}`,
        model: "m",
        weight: 1,
        rpm: null,
        tpm: null,
        maxRetries: null,
        priceCard: null,
      }) as PricedDeployment,
  );
  return {
    alias,
    configured: alias,
    teamId: null,
    deployments,
    accessGroups: [],
    waiting: [],
    pending: null,
    blocked,
    variant: "",
  };
}

/** Every attempt of a call that fails everywhere. */
async function attemptsOf(
  aliases: readonly Alias[],
  numRetries: number,
  status: number,
): Promise<readonly Target[]> {
  const groups = new Map(
    ALIASES.map((name, at) => [name, groupOf(name, aliases[at] as Alias)]),
  );
  const settings = {
    allowedFails: 1_000,
    cooldownMs: COOLING_MS,
    cooldownFailureRatio: 1,
    cooldownMinimumCalls: 1_000,
  };
  const cooldowns = new Cooldowns({
    router: () => settings,
    redis: null,
    log: pino({ level: "silent" }),
    onCooldown: () => undefined,
  });
  for (const [at, name] of ALIASES.entries()) {
    for (const [index, cools] of aliases[at]?.cooling.entries() ?? []) {
      if (cools) {
        const reason = "asked for";
        cooldowns.failed(`${name}${index}`, {
          status: 429,
          reason,
          retryAfterMs: COOLING_MS,
          alone: false,
          hasFallback: false,
          countedBefore: null,
        });
      }
    }
  }
  const fallbacks = Object.fromEntries(
    ALIASES.map((name, at) => [name, aliases[at]?.fallbacks ?? []]),
  );
  const router = {
    config: {
      ...settings,
      strategy: "simple-shuffle",
      numRetries,
      fallbacks,
      defaultFallbacks: [],
      contextWindowFallbacks: {},
      contentPolicyFallbacks: {},
    },
    cooldowns,
    observations: createObservations(),
    providerBudgets: { none: true },
    runners: {
      goneReason: () => null,
      slots: { select: (all: unknown) => all, of: () => null },
    },
  } as unknown as Router;
  const route = new Route(router, {
    group: groups.get("a") as ModelGroup,
    size: { inputTokens: 1, outputTokens: 1, measure: null },
    numRetries: null,
    fallbacks: null,
    find: (name) => groups.get(name) ?? null,
    mayRetry: async () => true,
    mayFallBack: async () => true,
    session: () => null,
  });
  const attempts: Target[] = [];
  const first = await route.first();
  let next = "deployment" in first ? first : null;
  while (next !== null) {
    attempts.push(next);
    next = await route.after(new UpstreamFailure(status, "failed"), next);
  }
  expect(route.fallbacksTaken).toBe(
    new Set(
      attempts.map(({ group }) => group.alias).filter((name) => name !== "a"),
    ).size,
  );
  return attempts;
}

/** What the configuration leads to from the alias that was called, itself included. */
function reachable(aliases: readonly Alias[]): readonly string[] {
  const found = ["a"];
  for (const name of found) {
    const alias = aliases[ALIASES.indexOf(name)];
    const usable = alias !== undefined && (name === "a" || !alias.blocked);
    const further = usable ? alias.fallbacks : [];
    found.push(...new Set(further.filter((one) => !found.includes(one))));
  }
  return found;
}

test("a call that fails everywhere has tried all that it may", async () => {
  await fc.assert(
    fc.asyncProperty(anyWorld, async ([aliases, numRetries, status]) => {
      const attempts = await attemptsOf(aliases, numRetries, status);
      const names = attempts.map(({ group }) => group.alias);
      const called = [...new Set(names)];
      // An alias that was left is not called again.
      expect(names.filter((name, at) => name !== names[at - 1])).toEqual(
        called,
      );
      const canAnswer = reachable(aliases).filter((name) => {
        const alias = aliases[ALIASES.indexOf(name)];
        return (
          alias !== undefined &&
          alias.cooling.includes(false) &&
          (name === "a" || !alias.blocked)
        );
      });
      const others = canAnswer.filter((name) => name !== "a");
      const fallbacks = called.filter((name) => name !== "a");
      expect(fallbacks.length).toBe(Math.min(others.length, MAX_CALLED));
      expect(called.includes("a")).toBe(canAnswer.includes("a"));
      for (const name of called) {
        const ids = attempts
          .filter(({ group }) => group.alias === name)
          .map(({ deployment }) => deployment.id);
        const cooling = aliases[ALIASES.indexOf(name)]?.cooling ?? [];
        expect(ids.some((id) => cooling[Number(id.slice(1))])).toBe(false);
        expect(ids.length).toBeLessThanOrEqual(numRetries + 1);
        const free = cooling.filter((cools) => !cools).length;
        expect(new Set(ids).size).toBe(Math.min(free, numRetries + 1));
      }
    }),
    { numRuns: 300 },
  );
});
