import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import type { Account } from "./accounts.ts";
import { call, endsOf, type Told } from "./calls.ts";
import { startRun, type CampaignOptions, type Run } from "./campaign.ts";
import { combined, type Verdict } from "./judge.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

type Store = "Postgres" | "Redis";

/** Host A goes with Postgres and Redis, at once as seen from outside: the gateways notice in either order. */
interface Outage {
  readonly first: Store;
  readonly backFirst: Store;
  /** The servers end and Redis loses its data; else the line is cut. */
  readonly stopped: boolean;
}

const OUTAGES: readonly Outage[] = [
  { first: "Redis", backFirst: "Redis", stopped: false },
  { first: "Postgres", backFirst: "Postgres", stopped: false },
  { first: "Redis", backFirst: "Postgres", stopped: true },
  { first: "Postgres", backFirst: "Redis", stopped: true },
];
const PROBE = {
  stream: false,
  tokens: 1,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
/** What a known key may be told while both are unavailable; its share may be used up, and its slots taken. */
const ALLOWED = new Set([
  "ok",
  "left",
  "budget_held",
  "budget_exceeded",
  "rate_limit_exceeded",
]);
/** At the start of an outage every budget has money left, in every share. */
const ALLOWED_AT_FIRST = new Set(["ok", "rate_limit_exceeded"]);
/** Calls that a budget has at the start of an outage. */
const CALLS = 60;

/** Postgres and Redis are unavailable together, for three gateways and for one. */
export async function awayCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  // A short run splits the outages: each order, of losing and of returning, on one of the testbeds.
  const short = options.rounds < OUTAGES.length;
  for (const [gateways, some] of [
    [3, [0, 3]],
    [1, [1, 2]],
  ] satisfies [number, number[]][]) {
    const outages = OUTAGES.filter((_, at) => !short || some.includes(at));
    verdicts.push(await outagesOf(postgres, options, gateways, outages));
  }
  return combined("a-away", verdicts);
}

async function outagesOf(
  postgres: TestPostgres,
  options: CampaignOptions,
  gateways: number,
  outages: readonly Outage[],
): Promise<Verdict> {
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways,
    redis: true,
  });
  const rejected: Told[] = [];
  try {
    const run = await startRun(testbed, options, {
      calls: CALLS,
      allowance: gateways,
      parallel: 8,
    });
    for (const outage of outages) {
      await run.load.pause();
      await testbed.drained();
      const { accounts } = await run.renew();
      for (const told of await callEach(testbed, accounts)) {
        run.heard(told);
      }
      run.load.resume();
      await sleep(500);
      const during = await suffer(postgres, testbed, run, {
        ...options,
        ...outage,
        accounts,
      });
      rejected.push(...during.rejected);
      options.say(
        `a-away x${gateways}: ${outage.first} first, ${outage.backFirst} back first; meanwhile ${endsOf(during.told)}; ${during.rejected.length} known keys rejected`,
      );
    }
    const verdict = await run.end(`a-away x${gateways}`);
    return {
      ...verdict,
      wrongAnswers: verdict.wrongAnswers + rejected.length,
      details: [
        ...verdict.details,
        ...rejected
          .slice(0, 5)
          .map(({ end, message }) => `known key rejected: ${end} ${message}`),
      ],
    };
  } finally {
    await postgres.start().catch(() => undefined);
    await testbed.close();
  }
}

interface Suffering extends CampaignOptions, Outage {
  readonly accounts: readonly Account[];
}

/** One outage under load. Answers what was told in it, and known keys that were rejected because of it. */
async function suffer(
  postgres: TestPostgres,
  testbed: Testbed,
  run: Run,
  { accounts, first, backFirst, stopped, awayMs }: Suffering,
) {
  const other = (store: Store): Store =>
    store === "Redis" ? "Postgres" : "Redis";
  const from = run.told.length;
  const ends = [first, other(first)].map((store) =>
    takeAway(postgres, testbed, store, stopped),
  );
  await Promise.all(ends);
  const atFirst = await callEach(testbed, accounts);
  for (const told of atFirst) {
    run.heard(told);
  }
  await sleep(awayMs);
  const told = run.told.slice(from);
  await bringBack(postgres, testbed, backFirst, stopped);
  await sleep(Math.min(awayMs, 3_000));
  await bringBack(postgres, testbed, other(backFirst), stopped);
  await sleep(500);
  const rejected = [
    ...atFirst.filter(({ end }) => !ALLOWED_AT_FIRST.has(end)),
    ...run.told.slice(from).filter(({ end }) => !ALLOWED.has(end)),
  ];
  return { told, rejected: [...new Set(rejected)] };
}

async function takeAway(
  postgres: TestPostgres,
  { gateways, redis }: Testbed,
  store: Store,
  stopped: boolean,
): Promise<void> {
  if (!stopped) {
    for (const { postgresRelay, redisRelay } of gateways) {
      (store === "Redis" ? redisRelay : postgresRelay)?.cut();
    }
  } else if (store === "Redis") {
    await redis?.stop();
  } else {
    await postgres.stop("SIGQUIT");
  }
}

async function bringBack(
  postgres: TestPostgres,
  { gateways, redis }: Testbed,
  store: Store,
  stopped: boolean,
): Promise<void> {
  if (!stopped) {
    for (const { postgresRelay, redisRelay } of gateways) {
      (store === "Redis" ? redisRelay : postgresRelay)?.restore();
    }
  } else if (store === "Redis") {
    await redis?.start();
  } else {
    await postgres.start();
  }
}

/** Every account at every gateway: from then on each gateway knows each key. */
function callEach(
  { gateways }: Testbed,
  accounts: readonly Account[],
): Promise<readonly Told[]> {
  return Promise.all(
    gateways.flatMap(({ url }) =>
      accounts.map((account) => call(url, account, PROBE)),
    ),
  );
}
