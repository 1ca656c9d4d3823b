import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { INPUT_PRICE, OUTPUT_PRICE } from "./gateway.ts";
import { accountsOf, countReservations } from "./limit-accounts.ts";
import { addTo, type Tally } from "./measure.ts";
import { CHAT_USAGE } from "./mock-answers.ts";
import type { Testbed } from "./testbed.ts";
import { limitedEntitiesOf, payersOf } from "./tenants.ts";
import { withClient } from "../servers/with-client.ts";

/** A proof that no work was skipped. */
export interface Proof {
  readonly name: string;
  readonly holds: boolean;
  readonly detail: string;
}

const CHECKED_CALLS = 50;
const MAX_ATTEMPTS = 5;
const NANOS = 1e9;

/** Compares the records of the provider, Postgres, Redis and the clients. */
export async function proveAll(
  testbed: Testbed,
  tally: Tally,
): Promise<readonly Proof[]> {
  return withClient(testbed.databaseUrl, async (client) => {
    return [
      await everyEntityChecked(testbed, client, tally),
      await everyCallInTheLedger(testbed, client, tally),
      await idsAgree(testbed, client),
      await sumsAgree(client),
      await moneyIsRight(client),
      await limitsAgree(testbed, client),
    ];
  });
}

/** Each limit's counter in Redis and each payer's total in Postgres changes by exactly the calls made. */
async function everyEntityChecked(
  testbed: Testbed,
  client: pg.Client,
  tally: Tally,
): Promise<Proof> {
  const name = "limits checked and payers charged on every call";
  const [tenant] = testbed.tenants;
  const target = testbed.targets.find((it) => it.name === "gateway");
  if (tenant === undefined || target === undefined) {
    throw new Error("the testbed has no tenant");
  }
  // The proxy has a budget and no rate limit: its total shows that it was charged, its window that it was checked.
  const limited = limitedEntitiesOf(tenant).filter((it) => it !== "proxy:");
  const payers = payersOf(tenant);
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const spentBefore = await spendOf(client, payers);
    const before = await accountsOf(testbed.redis.client, limited);
    const result = await testbed.load(target, {
      load: "plain",
      schedule: { kind: "count", concurrency: 4, calls: CHECKED_CALLS },
      salt: `proof ${tries}`,
      tenants: 1,
    });
    addTo(tally, result);
    await testbed.gateway.drained();
    const after = await accountsOf(testbed.redis.client, limited);
    const spentAfter = await spendOf(client, payers);
    // If a minute ends between the two reads, the counters are reset.
    const turned = limited.some(
      (_, at) => before[at]?.minute !== after[at]?.minute,
    );
    if (turned) {
      continue;
    }
    const counted = limited.filter(
      (_, at) =>
        (after[at]?.requests ?? 0) - (before[at]?.requests ?? 0) ===
        CHECKED_CALLS,
    );
    const charged = payers.filter((payer) => {
      const spent =
        (spentAfter.get(payer) ?? 0) - (spentBefore.get(payer) ?? 0);
      return near(spent, CHECKED_CALLS * CHAT_COST);
    });
    return {
      name,
      holds:
        counted.length === limited.length && charged.length === payers.length,
      detail: `${CHECKED_CALLS} calls: ${counted.length} of ${limited.length} entities' limits counted each of them (${limited.map(kindOf).join(", ")}), ${charged.length} of ${payers.length} payers were charged for each (${payers.map(kindOf).join(", ")})`,
    };
  }
  return {
    name,
    holds: false,
    detail: "the minute ended during every attempt",
  };
}

async function everyCallInTheLedger(
  { gateway }: Testbed,
  client: pg.Client,
  tally: Tally,
): Promise<Proof> {
  const rows = await one<{ calls: string; hits: string }>(
    client,
    "SELECT count(*) AS calls, count(*) FILTER (WHERE cache_hit) AS hits FROM spend_log",
  );
  const waiting = await gateway.journaled();
  return {
    name: "one ledger row for each answered call",
    holds:
      Number(rows.calls) === tally.answered &&
      Number(rows.hits) === tally.fromCache &&
      waiting === 0,
    detail: `${tally.answered} answers (${tally.fromCache} from the cache), ${rows.calls} rows (${rows.hits} cache hits), ${waiting} still in the journal`,
  };
}

async function idsAgree(
  { directory, mock }: Testbed,
  client: pg.Client,
): Promise<Proof> {
  const file = join(directory, "provider-ids");
  await mock.ask({ ask: "ids", file });
  const sent = readFileSync(file, "utf8").split("\n").filter(Boolean);
  const { rows } = await client.query<{ request_id: string }>(
    "SELECT request_id FROM spend_log WHERE NOT cache_hit",
  );
  const recorded = new Set(rows.map((row) => row.request_id));
  const missing = sent.filter((id) => !recorded.has(id)).length;
  const twice = sent.length - new Set(sent).size;
  return {
    name: "ids at the provider = ids in the ledger",
    holds: missing === 0 && twice === 0 && recorded.size === sent.length,
    detail: `${sent.length} at the provider (${twice} twice), ${recorded.size} in the ledger, ${missing} missing`,
  };
}

async function sumsAgree(client: pg.Client): Promise<Proof> {
  const { rows } = await client.query("SELECT * FROM spend_check");
  return {
    name: "every sum agrees with its rows",
    holds: rows.length === 0,
    detail: `spend_check has ${rows.length} rows`,
  };
}

/** Every call to the provider reports the same usage, so the cost is known in advance. */
async function moneyIsRight(client: pg.Client): Promise<Proof> {
  const sums = await one<{ chats: string; embeddings: string; spent: string }>(
    client,
    `SELECT count(*) FILTER (WHERE call_type = 'acompletion') AS chats,
       count(*) FILTER (WHERE call_type = 'aembedding') AS embeddings,
       (SELECT spend FROM spend_totals WHERE entity = 'proxy:' AND window_name = 'all') AS spent
     FROM spend_log WHERE NOT cache_hit`,
  );
  const due =
    Number(sums.chats) * CHAT_COST + Number(sums.embeddings) * EMBEDDING_COST;
  const spent = Number(sums.spent);
  return {
    name: "the bill is what the provider's usage costs",
    holds: near(spent, due),
    detail: `$${spent.toFixed(6)} of $${due.toFixed(6)}`,
  };
}

/** When idle, Redis has the ledger's totals and no reservations. */
async function limitsAgree(
  { tenants, redis }: Testbed,
  client: pg.Client,
): Promise<Proof> {
  const entities = [...new Set(tenants.flatMap(limitedEntitiesOf))];
  const accounts = await accountsOf(redis.client, entities);
  const { rows } = await client.query<{
    entity: string;
    window_name: string;
    spend: string;
  }>(
    "SELECT entity, window_name, spend FROM spend_totals WHERE entity = ANY($1)",
    [entities],
  );
  const ledger = new Map(
    rows.map((row) => [`${row.entity} ${row.window_name}`, Number(row.spend)]),
  );
  const reserved = await countReservations(redis.client);
  let agreeing = 0;
  const wrong: string[] = [];
  for (const [at, account] of accounts.entries()) {
    const entity = entities[at] ?? "";
    const resting = account.leased === 0 && account.slots === 0;
    const windows = account.windows.every(
      (window) =>
        window.pending === 0 &&
        near(window.total / NANOS, ledger.get(`${entity} ${window.name}`) ?? 0),
    );
    if (resting && windows && account.windows.length > 0) {
      agreeing++;
    } else {
      wrong.push(kindOf(entity));
    }
  }
  return {
    name: "Redis' totals = the ledger's, nothing reserved",
    holds: agreeing === entities.length && reserved === 0,
    detail: `${agreeing} of ${entities.length} entities agree${wrong.length > 0 ? ` (not: ${wrong.join(", ")})` : ""}, ${reserved} calls with reservations`,
  };
}

const CHAT_COST =
  CHAT_USAGE.prompt_tokens * INPUT_PRICE +
  CHAT_USAGE.completion_tokens * OUTPUT_PRICE;
const EMBEDDING_COST = CHAT_USAGE.prompt_tokens * INPUT_PRICE;

async function spendOf(
  client: pg.Client,
  entities: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ entity: string; spend: string }>(
    "SELECT entity, spend FROM spend_totals WHERE window_name = 'all' AND entity = ANY($1)",
    [entities],
  );
  return new Map(rows.map((row) => [row.entity, Number(row.spend)]));
}

async function one<Row extends pg.QueryResultRow>(
  client: pg.Client,
  statement: string,
): Promise<Row> {
  const { rows } = await client.query<Row>(statement);
  const [row] = rows;
  if (row === undefined) {
    throw new Error("the query returned no row");
  }
  return row;
}

/** Compares floats that were read from exact numbers. */
function near(one: number, other: number): boolean {
  return Math.abs(one - other) <= 1e-9 * Math.max(1, Math.abs(other));
}

function kindOf(entity: string): string {
  return entity.slice(0, entity.indexOf(":")).replace("_", " × ");
}
