import { randomUUID } from "node:crypto";
import { throwAwayDatabase } from "./database.ts";
import {
  modelYaml,
  startTestGateway,
  type Json,
  type TestGateway,
} from "./gateway.ts";
import { startMockProvider, type MockProvider } from "./provider.ts";
import { dayOf } from "../../gateway/ledger/budget-windows.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";
import { recordRows } from "../../gateway/database/ledger.ts";
import { query, type Pool } from "../../gateway/database/pool.ts";

/** A gateway with a separate database, for one test file. */
export interface AdminFixture extends TestGateway {
  readonly databaseUrl: string;
  readonly providerUrl: string;
  readonly pool: Pool;
  get(path: string, key?: string): Promise<Json>;
  post(path: string, body: unknown, key?: string): Promise<Json>;
  /** Sends a request that must be rejected; returns the status and the error. */
  rejected(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<{ readonly status: number; readonly error: Json }>;
  /** Writes rows to the ledger as a drain does. */
  spend(...rows: readonly Partial<SpendRow>[]): Promise<void>;
  /** Totals that differ from the sums of their rows. */
  differences(): Promise<readonly unknown[]>;
}

/** `more`: additional lines of the gateway's configuration. */
export async function startAdminFixture(
  more = "",
  env: Readonly<Record<string, string>> = {},
): Promise<AdminFixture> {
  const database = await throwAwayDatabase();
  const provider: MockProvider = await startMockProvider();
  const gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url) + more,
    env,
  });
  const { pool, config } = gateway.running.gateway;

  return {
    ...gateway,
    databaseUrl: database.url,
    providerUrl: provider.url,
    pool,
    get: (path, key) => gateway.ask("GET", path, undefined, key),
    post: (path, body, key) => gateway.ask("POST", path, body, key),
    async rejected(method, path, body, key) {
      const { status, json } = await gateway.request(method, path, body, key);
      return { status, error: json["error"] as Json };
    },
    async spend(...rows) {
      const { timezone, budgetDuration } = config.general;
      await recordRows(pool, rows.map(ledgerRow), [], budgetDuration, timezone);
    },
    differences: () => query(pool, "SELECT * FROM spend_check"),
    async stop() {
      await gateway.stop();
      await provider.close();
      await database.drop();
    },
  };
}

/** A row of a call that ended now, in UTC. */
export function ledgerRow(fields: Partial<SpendRow>): SpendRow {
  const at = fields.ended_at ?? new Date().toISOString();
  return {
    request_id: randomUUID(),
    started_at: at,
    ended_at: at,
    completion_started_at: null,
    day: dayOf(Date.parse(at), "UTC"),
    call_type: "acompletion",
    status: "success",
    payer: null,
    api_key: null,
    user_id: null,
    user_pays: true,
    team_id: null,
    organization_id: null,
    end_user: null,
    tags: null,
    model_group: "mock",
    model_id: null,
    model: "mock-model",
    provider: "openai",
    spend: 0.25,
    saved: 0,
    unpriced: false,
    prompt_tokens: 10,
    completion_tokens: 4,
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_hit: false,
    cache_key: null,
    response_id: null,
    session_id: null,
    requester_ip: null,
    metadata: null,
    ...fields,
  };
}
