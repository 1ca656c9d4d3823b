import { pino } from "pino";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import {
  createPool,
  longQuery,
  transaction,
  type Pool,
} from "../../gateway/database/pool.ts";
import { gatewayUrl, prepareTemplate } from "../servers/database.ts";
import {
  startTestGateway,
  modelYaml,
  type TestGateway,
} from "../servers/gateway.ts";
import { startPostgres } from "../servers/postgres.ts";
import { postgresCpu } from "./postgres-cpu.ts";
import { generateLedger, type LedgerSize } from "./ledger-rows.ts";
import { readLedgerOptions } from "./ledger-options.ts";

/** The latency of one list or report, in ms. */
interface Timing {
  readonly path: string;
  /** Processor time of Postgres and the gateway per request, more reliable than wall time on a busy machine; null: unknown. */
  readonly cpu: number | null;
  readonly p50: number;
  readonly p99: number;
  readonly bytes: number;
}

const CHECK_TIMEOUT_MS = HOUR_MS;

/** The measured lists and reports, with the names of a key, a user and a team of the ledger. */
function paths(key: string, yesterday: string): readonly string[] {
  return [
    "/spend/logs",
    "/spend/logs?page=50",
    `/spend/logs?api_key=${key}`,
    "/spend/logs?user_id=user-1",
    `/spend/logs?user_id=user-1&start_date=${yesterday}`,
    "/spend/logs?request_id=chatcmpl-1",
    "/spend/logs?summarize=true",
    `/spend/logs/v2?start_date=${yesterday}&end_date=${yesterday}`,
    `/spend/logs/v2?user_id=user-1&start_date=${yesterday}&end_date=${yesterday}`,
    "/spend/keys",
    "/spend/users",
    "/spend/tags",
    "/global/spend",
    "/global/spend/logs",
    "/global/spend/keys",
    "/global/spend/models",
    "/global/spend/teams",
    "/global/spend/tags",
    "/global/spend/provider",
    `/global/spend/report?start_date=${yesterday}`,
    "/global/spend/report",
    "/global/spend/report?group_by=api_key",
    "/global/activity",
    "/global/activity/model",
    "/global/activity/cache_hits",
    "/user/daily/activity?user_id=user-1",
    "/team/daily/activity",
    "/team/daily/activity?team_ids=team-1",
    "/tag/daily/activity?tags=tag-0",
    "/organization/daily/activity?organization_ids=org-1",
    "/team/daily/activity/aggregated?team_ids=team-1",
    "/model/statistics",
    "/model/history?model=model-1",
    "/model/history?model=model-1&hours=720",
    "/key/list",
    "/key/list?return_full_object=true&size=100",
    `/key/info?key=${key}`,
    "/user/list",
    "/user/info?user_id=user-1",
    "/team/info?team_id=team-1",
    "/v2/team/list",
    "/notices",
    "/refusals",
    "/me/usage",
  ];
}

/**
 * Generates a ledger in an empty database, requests each list and report `rounds` times in sequence, and checks all totals
 * at the end. Throws if a route fails or a total is wrong.
 */
export async function benchLedger(options: {
  /** URL of an empty, migrated database for the gateway's role. */
  readonly databaseUrl: string;
  readonly size: LedgerSize;
  readonly rounds: number;
  readonly onStep: (step: string) => void;
}): Promise<{
  readonly timings: readonly Timing[];
  readonly checkMs: number;
  readonly bytesPerRow: number;
  readonly dailyRows: number;
}> {
  const { databaseUrl, size, rounds, onStep } = options;
  const pool = createPool(databaseUrl, 2, pino({ level: "silent" }));
  let gateway: TestGateway | null = null;
  try {
    await generateLedger(pool, size, onStep);
    onStep("starting the gateway");
    gateway = await startTestGateway({
      databaseUrl,
      providerUrl: "http://127.0.0.1:9/v1",
      yaml: modelYaml("http://127.0.0.1:9/v1"),
    });
    const cpuOfPostgres = await postgresCpu(pool);
    const cpu =
      cpuOfPostgres === null
        ? null
        : () => cpuOfPostgres() + cpuOfThisProcess();
    const key = await oneKey(pool);
    const yesterday = new Date(Date.now() - DAY_MS)
      .toISOString()
      .slice(0, "2026-11-21".length);
    const timings: Timing[] = [];
    for (const path of paths(key, yesterday)) {
      const timing = await measure(gateway, path, rounds, cpu);
      timings.push(timing);
      onStep(
        `p99 ${timing.p99.toFixed(1)} ms, processor ${formatMs(timing.cpu)} ms  ${path}`,
      );
    }
    onStep("checking all totals");
    const before = performance.now();
    const differences = await transaction(pool, (client) =>
      longQuery(client, "SELECT * FROM spend_check LIMIT 10", CHECK_TIMEOUT_MS),
    );
    const checkMs = performance.now() - before;
    if (differences.length > 0) {
      throw new Error(
        `the totals of the ledger do not agree: ${JSON.stringify(differences)}`,
      );
    }
    const { bytes, daily_rows: dailyRows } = await sizesOf(pool);
    return { timings, checkMs, bytesPerRow: bytes / size.rows, dailyRows };
  } finally {
    await gateway?.stop();
    await pool.end();
  }
}

async function oneKey(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ token: string }>(
    "SELECT token FROM keys ORDER BY token LIMIT 1",
  );
  return rows[0]?.token ?? "";
}

function cpuOfThisProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function formatMs(ms: number | null): string {
  return ms === null ? "–" : ms.toFixed(1);
}

async function measure(
  gateway: TestGateway,
  path: string,
  rounds: number,
  cpu: (() => number) | null,
): Promise<Timing> {
  const times: number[] = [];
  let bytes = 0;
  let cpuBefore = 0;
  // The first request warms the caches.
  for (let round = -1; round < rounds; round++) {
    if (round === 0) {
      cpuBefore = cpu?.() ?? 0;
    }
    const before = performance.now();
    const answer = await gateway.request("GET", path);
    if (answer.status !== 200) {
      throw new Error(`${path} returned ${answer.status}: ${answer.text}`);
    }
    if (round >= 0) {
      times.push(performance.now() - before);
    }
    bytes = answer.text.length;
  }
  const cpuEach = cpu === null ? null : (cpu() - cpuBefore) / rounds;
  times.sort((one, other) => one - other);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return { path, cpu: cpuEach, p50: at(0.5), p99: at(0.99), bytes };
}

interface Sizes {
  readonly bytes: number;
  readonly daily_rows: number;
}

async function sizesOf(pool: Pool): Promise<Sizes> {
  const { rows } = await pool.query<Sizes>(
    `SELECT sum(pg_total_relation_size(inhrelid)) AS bytes, (SELECT count(*) FROM daily_spend) AS daily_rows
       FROM pg_inherits WHERE inhparent = 'spend_log'::regclass`,
  );
  return rows[0] ?? { bytes: 0, daily_rows: 0 };
}

async function main(): Promise<void> {
  const { size, rounds } = readLedgerOptions("bench:ledger", {
    keys: 1_000,
    rounds: 100,
    subject: "list and report",
  });
  const started = Date.now();
  const onStep = (step: string) =>
    process.stderr.write(
      `${((Date.now() - started) / 1_000).toFixed(1).padStart(7)} s  ${step}\n`,
    );
  onStep("starting an empty Postgres");
  const postgres = await startPostgres([
    "-c",
    "shared_buffers=512MB",
    "-c",
    "max_wal_size=8GB",
  ]);
  try {
    await prepareTemplate(postgres);
    const { timings, checkMs, bytesPerRow, dailyRows } = await benchLedger({
      databaseUrl: gatewayUrl(postgres.url("hearth")),
      size,
      rounds,
      onStep,
    });
    const { rows, keys, days } = size;
    process.stdout.write(
      `${rows.toLocaleString("en")} rows of ${keys.toLocaleString("en")} keys over ${days} days, ${Math.round(bytesPerRow)} bytes a row with its indexes; ${dailyRows.toLocaleString("en")} daily rows\n\n` +
        `     p50 ms      p99 ms      cpu ms     bytes  route\n`,
    );
    for (const { path, cpu, p50, p99, bytes } of timings) {
      process.stdout.write(
        `${p50.toFixed(1).padStart(11)} ${p99.toFixed(1).padStart(11)} ${formatMs(cpu).padStart(11)} ${String(bytes).padStart(9)}  GET ${path}\n`,
      );
    }
    process.stdout.write(
      `\nall totals agree; checking them took ${(checkMs / 1_000).toFixed(1)} s\n`,
    );
  } finally {
    await postgres.remove();
  }
}

if (import.meta.main) {
  await main();
}
