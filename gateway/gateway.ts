import type { Logger } from "pino";
import type { Callers } from "./access/caller-lookups.ts";
import type { Turns } from "./admin/turns.ts";
import type { TokenCallers } from "./access/token-callers.ts";
import type { Journal } from "./journal/journal-types.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Limits } from "./limits/limits.ts";
import type { PendingSums } from "./ledger/pending.ts";
import type { Intent, Outcome } from "./ledger/records.ts";
import type { TokenCounter } from "./tokens/tokens.ts";
import type { ResponseCache } from "./cache/cache.ts";
import type { RejectionLog } from "./calls/refusal-log.ts";
import type { PromptLog } from "./calls/prompt-log.ts";
import type { ActiveCalls } from "./calls/active-calls.ts";
import type { Flights } from "./cache/flights.ts";
import type { ConfigDiff } from "./config/diff.ts";
import type { ConfigProblem } from "../core/config/problem.ts";
import type { GatewayConfig } from "./config/types.ts";
import type { LoadResult } from "./config/load.ts";
import type { Bodies } from "./http/bodies.ts";
import type { DatabaseState } from "./database/connection.ts";
import type { SocketAcceptor } from "./http/upgrade.ts";
import type { CallMetrics } from "./metrics/call-metrics.ts";
import type { Pool } from "./database/pool.ts";
import type { ProviderClient } from "./providers/client.ts";
import type { Catalog } from "./routing/catalog.ts";
import type { ModelHealth } from "./routing/health.ts";
import type { BackgroundResponses } from "./responses/background.ts";
import type { ResponseSockets } from "./responses/socket/response-sockets.ts";
import type { ResponseEvents } from "./responses/response-events.ts";
import type { ResponseStore } from "./responses/store.ts";
import type { Router } from "./routing/route.ts";
import type { Runners } from "./runners/runners.ts";
import type { Traces } from "./tracing/traces.ts";
import type { CallWebhook } from "./webhook/call-webhook.ts";
import type { WorkerGroup } from "./workers/group.ts";

/** The result of a reload: the changes, or why there were none. */
export type Reloaded =
  | {
      readonly ok: true;
      readonly diff: ConfigDiff;
      /** Settings without effect. */
      readonly warnings: readonly ConfigProblem[];
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** The parts of a running gateway, created once and passed to every route. */
export interface Gateway {
  /** The current one: a reload replaces it, running calls keep the one they started with. */
  readonly config: GatewayConfig;
  readonly log: Logger;
  readonly pool: Pool;
  /** For statements in the path of calls, which have deadlines. */
  readonly callPool: Pool;
  readonly database: DatabaseState;
  readonly callers: Callers;
  /** Of the users of admin routes. */
  readonly turns: Turns;
  readonly jwt: TokenCallers;
  readonly catalog: Catalog;
  readonly limits: Limits;
  readonly metrics: CallMetrics;
  readonly prompts: PromptLog;
  readonly responses: ResponseStore;
  readonly responseEvents: ResponseEvents;
  readonly background: BackgroundResponses;
  readonly bodies: Bodies;
  readonly sockets: ResponseSockets;
  readonly acceptor: SocketAcceptor;
  /** null: calls are not traced. */
  readonly traces: Traces | null;
  /** null: no webhook receives finished calls. */
  readonly webhook: CallWebhook | null;
  readonly journal: Journal<Intent, Outcome>;
  readonly pending: PendingSums;
  readonly ledger: Ledger;
  readonly tokens: TokenCounter;
  readonly cache: ResponseCache;
  readonly flights: Flights;
  readonly activeCalls: ActiveCalls;
  readonly refusals: RejectionLog;
  readonly providers: ProviderClient;
  readonly router: Router;
  readonly runners: Runners;
  readonly modelHealth: ModelHealth;
  readonly version: string;
  readonly startedAtSeconds: number;
  /** Reads the configuration as the next start would; changes nothing. */
  readConfig(): LoadResult;
  /** Reads the configuration again, in every worker; an invalid one changes nothing. */
  reload(): Promise<Reloaded>;
  /** The same in this process alone. */
  reloadHere(): Promise<Reloaded>;
  /** Reads the models of the database again on this instance; the others are notified of the change itself. */
  reloadModels(): Promise<void>;
  /** Resolves references in stored models. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True from the first stop signal: readiness answers 503, running calls are finished. */
  readonly stopping: () => boolean;
  /** The workers that serve the same port; null: this process alone does. */
  readonly group: WorkerGroup | null;
}
