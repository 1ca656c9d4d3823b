import { setTimeout as sleep } from "node:timers/promises";
import type { TestPostgres } from "../servers/postgres.ts";
import type { Account } from "./accounts.ts";
import { call, endsOf, type Received } from "./calls.ts";
import { startRun, type CampaignOptions, type Run } from "./campaign.ts";
import { combined, type Verdict } from "./judge.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

type Store = "Postgres" | "Redis";

/** Host A is lost, and with it Postgres and Redis at the same time; the gateways may notice in either order. */
interface Outage {
  readonly first: Store;
  readonly firstBack: Store;
  /** Whether the servers are stopped, with the loss of Redis' data; otherwise only the connections are cut. */
  readonly stopped: boolean;
}

const OUTAGES: readonly Outage[] = [
  { first: "Redis", firstBack: "Redis", stopped: false },
  { first: "Postgres", firstBack: "Postgres", stopped: false },
  { first: "Redis", firstBack: "Postgres", stopped: true },
  { first: "Postgres", firstBack: "Redis", stopped: true },
];
const PROBE = {
  stream: false,
  tokens: 1,
  delayMs: 0,
  chunkDelayMs: 0,
  leaveAfter: null,
} as const;
/** How calls of a known key may end while both are unavailable: its share may be used up and its slots taken. */
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
  // A short run tests each order of loss and recovery on one of the testbeds only.
  const isShort = options.rounds < OUTAGES.length;
  for (const [gateways, selected] of [
    [3, [0, 3]],
    [1, [1, 2]],
  ] satisfies [number, number[]][]) {
    const outages = OUTAGES.filter(
      (_, at) => !isShort || selected.includes(at),
    );
    verdicts.push(await runOutages(postgres, options, gateways, outages));
  }
  return combined("a-away", verdicts);
}

async function runOutages(
  postgres: TestPostgres,
  options: CampaignOptions,
  gateways: number,
  outages: readonly Outage[],
): Promise<Verdict> {
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways,
    redis: true,
  });
  const rejected: Received[] = [];
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
      for (const received of await callEach(testbed, accounts)) {
        run.record(received);
      }
      run.load.resume();
      await sleep(500);
      const during = await runOutage(postgres, testbed, run, {
        ...options,
        ...outage,
        accounts,
      });
      rejected.push(...during.rejected);
      options.log(
        `a-away x${gateways}: ${outage.first} first, ${outage.firstBack} back first; during the outage ${endsOf(during.received)}; ${during.rejected.length} known keys rejected`,
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

interface OutageOptions extends CampaignOptions, Outage {
  readonly accounts: readonly Account[];
}

/** Runs one outage under load. Returns the responses received during it, and those that rejected known keys because of it. */
async function runOutage(
  postgres: TestPostgres,
  testbed: Testbed,
  run: Run,
  { accounts, first, firstBack, stopped, outageMs }: OutageOptions,
) {
  const other = (store: Store): Store =>
    store === "Redis" ? "Postgres" : "Redis";
  const from = run.received.length;
  const losses = [first, other(first)].map((store) =>
    stopStore(postgres, testbed, store, stopped),
  );
  await Promise.all(losses);
  const atFirst = await callEach(testbed, accounts);
  for (const received of atFirst) {
    run.record(received);
  }
  await sleep(outageMs);
  const received = run.received.slice(from);
  await restoreStore(postgres, testbed, firstBack, stopped);
  await sleep(Math.min(outageMs, 3_000));
  await restoreStore(postgres, testbed, other(firstBack), stopped);
  await sleep(500);
  const rejected = [
    ...atFirst.filter(({ end }) => !ALLOWED_AT_FIRST.has(end)),
    ...run.received.slice(from).filter(({ end }) => !ALLOWED.has(end)),
  ];
  return { received, rejected: [...new Set(rejected)] };
}

async function stopStore(
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

async function restoreStore(
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

/** Calls every gateway with every account, after which each gateway has cached each key. */
function callEach(
  { gateways }: Testbed,
  accounts: readonly Account[],
): Promise<readonly Received[]> {
  return Promise.all(
    gateways.flatMap(({ url }) =>
      accounts.map((account) => call(url, account, PROBE)),
    ),
  );
}
