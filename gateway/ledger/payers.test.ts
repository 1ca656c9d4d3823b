import { describe, expect, it } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import type { KeyCaller, PayerLimits } from "../access/callers.ts";
import { entitiesOf, limitedEntities, type LimitSources } from "./payers.ts";

const NONE: PayerLimits = {
  maxBudget: null,
  budgetDuration: null,
  tokensPerMinute: null,
  requestsPerMinute: null,
  parallel: null,
};
const DAILY: PayerLimits = { ...NONE, maxBudget: 2, budgetDuration: "1d" };
const MORNING = Date.parse("2026-11-21T08:00:00Z");

function keyWith(own: Partial<KeyCaller>): KeyCaller {
  return {
    kind: "key",
    token: "hash",
    alias: null,
    keyName: "sk-...1234",
    models: [],
    aliases: new Map(),
    tags: [],
    guardrails: [],
    storePrompts: false,
    metadata: {},
    allowedRoutes: [],
    keyType: "default",
    blocked: false,
    expires: null,
    temporaryIncrease: null,
    limits: NONE,
    modelLimits: new Map(),
    userId: "user",
    userPays: true,
    user: { models: [], role: "internal_user", blocked: false, limits: DAILY },
    team: null,
    organization: null,
    ...own,
  };
}

function callBy(
  caller: KeyCaller,
  more: Partial<LimitSources> = {},
): LimitSources {
  return {
    caller,
    alias: "chat",
    endUser: null,
    tags: [],
    proxy: NONE,
    ...more,
  };
}

describe("payers that a call is charged to", () => {
  const payers = {
    apiKey: "hash",
    userId: "user",
    userPays: true,
    teamId: "t",
    organizationId: "o",
    endUser: "e",
    tags: ["free", "paid"],
    alias: "chat",
  };
  const all = [
    "proxy:",
    "key:hash",
    "key_model:hash/chat",
    "user:user",
    "team:t",
    "member:t/user",
    "organization:o",
    "end_user:e",
    "tag:free",
    "tag:paid",
  ];

  it("are all of them, with or without a budget", () => {
    expect(entitiesOf(payers)).toEqual(all);
  });

  it("leave out a user who does not pay for keys of the team, but not the member", () => {
    expect(entitiesOf({ ...payers, userPays: false })).toEqual(
      all.filter((entity) => entity !== "user:user"),
    );
  });

  it("are the whole gateway alone for a call without any", () => {
    const none = { apiKey: null, userId: null, teamId: null, endUser: null };
    expect(
      entitiesOf({ ...payers, ...none, organizationId: null, tags: [] }),
    ).toEqual(["proxy:"]);
  });
});

describe("payers with a budget or a limit", () => {
  it("are ordered by precedence; those without limits are left out", () => {
    const team = {
      id: "t",
      alias: null,
      models: [],
      modelAliases: new Map(),
      tags: [],
      guardrails: [],
      blocked: false,
      limits: DAILY,
      memberModels: [],
      memberLimits: DAILY,
    };
    const organization = { id: "o", models: [], limits: DAILY };
    const caller = keyWith({
      userPays: false,
      limits: DAILY,
      modelLimits: new Map([["chat", DAILY]]),
      team,
      organization,
    });
    const sources = callBy(caller, {
      endUser: { id: "e", blocked: false, limits: DAILY },
      tags: [
        { id: "free", blocked: false, limits: NONE },
        { id: "paid", blocked: false, limits: DAILY },
      ],
      proxy: DAILY,
    });
    expect(
      limitedEntities(sources, MORNING, "UTC").map(({ entity }) => entity),
    ).toEqual([
      "key:hash",
      "key_model:hash/chat",
      "team:t",
      "organization:o",
      "tag:paid",
      "member:t/user",
      "end_user:e",
      "proxy:",
    ]);
  });

  it("are the same list until a window ends", () => {
    const sources = callBy(keyWith({ limits: DAILY }));
    const first = limitedEntities(sources, MORNING, "UTC");
    expect(first.map(({ entity }) => entity)).toEqual([
      "key:hash",
      "user:user",
    ]);
    expect(limitedEntities({ ...sources }, MORNING + HOUR_MS, "UTC")).toBe(
      first,
    );
    const [next] = limitedEntities(sources, MORNING + 24 * HOUR_MS, "UTC");
    expect(next?.window).toBe("1d@2026-11-22T00:00:00.000Z");
    expect(limitedEntities(sources, MORNING, "UTC")).toEqual(first);
  });

  it("differ by alias, by the limits of the gateway, and by time zone", () => {
    const caller = keyWith({ modelLimits: new Map([["chat", DAILY]]) });
    const entities = (more: Partial<LimitSources>, zone = "UTC") =>
      limitedEntities(callBy(caller, more), MORNING, zone);
    const chat = entities({});
    expect(entities({ alias: "other" })).toHaveLength(1);
    expect(entities({ proxy: DAILY })).toHaveLength(3);
    expect(entities({})).toEqual(chat);
    expect(entities({}, "Europe/Berlin")[0]?.window).toBe(
      "1d@2026-11-20T23:00:00.000Z",
    );
  });

  it("have a raised budget while a temporary increase lasts", () => {
    const caller = keyWith({
      limits: { ...NONE, maxBudget: 2 },
      temporaryIncrease: { dollars: 1, until: MORNING + HOUR_MS },
    });
    const budgetAt = (at: number) =>
      limitedEntities(callBy(caller), at, "UTC")[0]?.budget;
    expect(budgetAt(MORNING)).toBe(3_000_000_000);
    expect(budgetAt(MORNING + HOUR_MS - 1)).toBe(3_000_000_000);
    expect(budgetAt(MORNING + HOUR_MS)).toBe(2_000_000_000);
    expect(budgetAt(MORNING)).toBe(3_000_000_000);
  });
});
