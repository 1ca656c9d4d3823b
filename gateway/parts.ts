import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { createCallers, type Callers } from "./access/caller-lookups.ts";
import {
  createMemoryResponseCache,
  createRedisResponseCache,
  type ResponseCache,
} from "./cache/cache.ts";
import { createFlights } from "./cache/flights.ts";
import { createMemoryCache } from "./cache/memory.ts";
import { tryDeployment } from "./calls/health-check.ts";
import { PromptLog } from "./calls/prompt-log.ts";
import { RejectionLog } from "./calls/refusal-log.ts";
import { ActiveCalls } from "./calls/active-calls.ts";
import type { GatewayConfig } from "./config/types.ts";
import type { LoadResult } from "./config/load.ts";
import type { Connections } from "./connections.ts";
import type { DatabaseState } from "./database/connection.ts";
import {
  createPartitionKeeper,
  type PartitionKeeper,
} from "./database/partitions.ts";
import { Turns } from "./admin/turns.ts";
import type { Pool } from "./database/pool.ts";
import { followDatabase } from "./follow-database.ts";
import type { Gateway, Reloaded } from "./gateway.ts";
import { Bodies } from "./http/bodies.ts";
import { SocketAcceptor } from "./http/upgrade.ts";
import { JwtCallers } from "./jwt/jwt-callers.ts";
import type { Journal } from "./journal/journal-types.ts";
import { Ledger } from "./ledger/ledger.ts";
import { countersOfKey, proxyLimitsOf } from "./ledger/payers.ts";
import { createPendingSums } from "./ledger/pending.ts";
import type { Intent, Outcome } from "./ledger/records.ts";
import { createRetention, type Retention } from "./ledger/retention.ts";
import { windowAt } from "./ledger/budget-windows.ts";
import { createLimits } from "./limits/create.ts";
import type { Limits } from "./limits/limits.ts";
import { LiveConfig, type LiveConfigOptions } from "./live-config.ts";
import { createCallMetrics, type CallMetrics } from "./metrics/call-metrics.ts";
import type { PriceBook } from "./pricing/prices.ts";
import {
  createProviderClient,
  type ProviderClient,
} from "./providers/client.ts";
import type { Catalog } from "./routing/catalog.ts";
import { BackgroundResponses } from "./responses/background.ts";
import { ResponseSockets } from "./responses/socket/response-sockets.ts";
import { ResponseEvents } from "./responses/response-events.ts";
import { ResponseStore } from "./responses/store.ts";
import { Cooldowns } from "./routing/cooldowns.ts";
import { ModelHealth } from "./routing/health.ts";
import { ProviderBudgets } from "./routing/provider-budgets.ts";
import type { Router } from "./routing/route.ts";
import { createObservations } from "./routing/strategies.ts";
import { createMemoryUsage, createRedisUsage } from "./routing/usage.ts";
import { viewRunner } from "./runners/runner-view.ts";
import { Runners } from "./runners/runners.ts";
import { RedisSlotLeases } from "./runners/slot-leases.ts";
import { createTokenCounter } from "./tokens/tokens.ts";
import type { Traces } from "./tracing/traces.ts";
import { CallWebhook } from "./webhook/call-webhook.ts";
import { ofEveryWorker } from "./workers/answers.ts";
import type { WorkerGroup } from "./workers/group.ts";
import { reloadedOf } from "./workers/reloaded.ts";

interface PartsOptions extends LiveConfigOptions {
  readonly version: string;
  readonly group?: WorkerGroup | undefined;
}

/** All parts of a running gateway. Each gets only the others that it uses. */
export class GatewayParts implements Gateway {
  readonly version: string;
  readonly startedAtSeconds = Math.floor(Date.now() / 1_000);
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly readConfig: () => LoadResult;
  /** As it was at the start. */
  readonly startConfig: GatewayConfig;
  readonly live: LiveConfig;
  readonly pool: Pool;
  readonly callPool: Pool;
  readonly sessionPool: Pool;
  /** Whether other instances may use the database: limits are shared through Redis. */
  readonly isShared: boolean;
  readonly journal: Journal<Intent, Outcome>;
  readonly limits: Limits;
  readonly metrics: CallMetrics;
  readonly callers: Callers;
  readonly jwt: JwtCallers;
  readonly turns = new Turns();
  readonly pending = createPendingSums();
  readonly ledger: Ledger;
  readonly retention: Retention;
  readonly partitions: PartitionKeeper;
  readonly tokens = createTokenCounter();
  readonly database: DatabaseState;
  readonly cache: ResponseCache;
  readonly flights = createFlights();
  readonly activeCalls: ActiveCalls;
  readonly refusals: RejectionLog;
  readonly prompts: PromptLog;
  readonly responses: ResponseStore;
  readonly responseEvents: ResponseEvents;
  readonly background: BackgroundResponses;
  readonly bodies: Bodies;
  readonly sockets: ResponseSockets;
  readonly acceptor: SocketAcceptor;
  readonly traces: Traces | null;
  readonly webhook: CallWebhook | null;
  readonly providers: ProviderClient;
  readonly router: Router;
  readonly runners: Runners;
  readonly modelHealth: ModelHealth;
  readonly group: WorkerGroup | null;
  readonly stopping = () => this.#stopping;
  #stopping = false;

  constructor(
    options: PartsOptions,
    journal: Journal<Intent, Outcome>,
    connections: Connections,
    prices: PriceBook,
    traces: Traces | null,
  ) {
    const { config, log } = options;
    const { pool, callPool, sessionPool, redis } = connections;
    this.version = options.version;
    this.group = options.group ?? null;
    this.env = options.env;
    this.log = log;
    this.readConfig = options.readConfig;
    this.startConfig = config;
    this.live = new LiveConfig(options, connections, prices);
    this.pool = pool;
    this.callPool = callPool;
    this.sessionPool = sessionPool;
    this.isShared = redis !== null;
    this.journal = journal;
    this.cache = createCache(config, connections);
    this.limits = this.#createLimits(redis);
    this.metrics = createCallMetrics(
      config.general.metricsLabelValues,
      config.litellmMetrics,
    );
    this.callers = this.#createCallers();
    this.jwt = this.#createJwt();
    this.ledger = this.#createLedger();
    this.retention = createRetention({
      pool,
      config: () => this.config.general.retention,
      log,
    });
    this.partitions = createPartitionKeeper(pool, log);
    this.activeCalls = new ActiveCalls(this.limits);
    this.refusals = new RejectionLog(pool, log);
    this.prompts = new PromptLog(pool, log);
    this.responses = new ResponseStore(callPool, () => this.config);
    this.responseEvents = new ResponseEvents(callPool, () => this.config);
    this.background = new BackgroundResponses(
      this.responses,
      this.responseEvents,
      log,
    );
    this.bodies = new Bodies(config.server);
    this.sockets = new ResponseSockets(() => this.config, this.bodies, log);
    this.acceptor = new SocketAcceptor(config.server.bodyLimitBytes);
    this.traces = traces;
    this.webhook =
      config.callWebhook === null
        ? null
        : new CallWebhook(config.callWebhook, log);
    this.providers = createProviderClient(config.timeouts);
    this.runners = this.#createRunners(redis);
    this.router = this.#createRouter(redis);
    this.modelHealth = this.#createModelHealth();
    this.database = followDatabase(this);
  }

  get config(): GatewayConfig {
    return this.live.config;
  }

  get catalog(): Catalog {
    return this.live.catalog;
  }

  async reload(): Promise<Reloaded> {
    return reloadedOf(await ofEveryWorker(this, "reload"));
  }

  reloadHere(): Promise<Reloaded> {
    return this.live.reload();
  }

  reloadModels(): Promise<void> {
    return this.live.reloadModels();
  }

  /** From now on readiness answers 503. */
  beginStopping(): void {
    this.#stopping = true;
  }

  #createLimits(redis: Redis | null): Limits {
    const { log } = this;
    return createLimits({
      instance: this.journal.instance,
      failClosed: this.startConfig.general.failClosed,
      minInstances: () => this.database.instances(),
      undrained: () => {
        const { pendingRecords, openIntents } = this.journal.state();
        return pendingRecords + openIntents;
      },
      onAway: (reason) =>
        log.error(
          { reason },
          "Redis is unavailable: limits are kept in process, at this instance's share",
        ),
      onBack: () => log.info("Redis is available again: limits are shared"),
      ...(redis === null ? {} : { redis }),
    });
  }

  #createCallers(): Callers {
    const { keyCacheMs, timezone } = this.startConfig.general;
    return createCallers(this.callPool, keyCacheMs, {
      key: async (key) => {
        const proxy = proxyLimitsOf(this.config.general);
        await this.ledger.totals.prepare(
          countersOfKey(key, proxy, Date.now(), timezone),
        );
      },
      payer: async (entity, { maxBudget, budgetDuration }) => {
        if (maxBudget === null) {
          return;
        }
        const window = windowAt(budgetDuration, Date.now(), timezone).name;
        await this.ledger.totals.prepare([{ entity, window }]);
      },
    });
  }

  #createJwt(): JwtCallers {
    return new JwtCallers({
      config: () => this.config,
      pool: this.callPool,
      callers: this.callers,
      database: () => this.database,
    });
  }

  #createLedger(): Ledger {
    const { timezone, budgetDuration } = this.startConfig.general;
    return new Ledger({
      pool: this.pool,
      callPool: this.callPool,
      journal: this.journal,
      limits: this.limits,
      pending: this.pending,
      timeZone: timezone,
      proxyDuration: budgetDuration,
      databaseConnected: () => this.database.connected(),
      onSoftBudget: (kind) => this.metrics.softBudgetReached(kind),
      log: this.log,
    });
  }

  #createRunners(redis: Redis | null): Runners {
    const { timeouts, general } = this.startConfig;
    return new Runners({
      deployments: () => this.catalog.deployments,
      probeMs: () => this.config.router.runnerProbeMs,
      connectMs: timeouts.connectMs,
      timeZone: general.timezone,
      leases: redis === null ? null : new RedisSlotLeases(redis),
      log: this.log,
    });
  }

  #createRouter(redis: Redis | null): Router {
    const { live, runners } = this;
    return {
      runners,
      get config() {
        return live.config.router;
      },
      cooldowns: new Cooldowns({
        router: () => live.config.router,
        redis,
        log: this.log,
        onCooldown: (id, status) => this.#countCooldown(id, status),
      }),
      usage: redis === null ? createMemoryUsage() : createRedisUsage(redis),
      observations: createObservations(),
      providerBudgets: new ProviderBudgets({
        budgets: () => live.config.router.providerBudgets,
        timeZone: this.startConfig.general.timezone,
        pool: this.callPool,
        log: this.log,
      }),
    };
  }

  #countCooldown(id: string, status: number): void {
    const { litellm } = this.metrics;
    this.metrics.cooledDown(id);
    if (litellm !== null) {
      const deployment = this.catalog.deployments.find((one) => one.id === id);
      if (deployment !== undefined) {
        litellm.cooledDown(deployment, status);
      }
    }
  }

  #createModelHealth(): ModelHealth {
    const { cooldowns, observations } = this.router;
    return new ModelHealth({
      deployments: () => this.catalog.deployments,
      tryDeployment: async (deployment) =>
        (await tryDeployment(this, deployment)).error,
      cooldownOf: ({ id }) => cooldowns.stateOf(id),
      runnerOf: (deployment) => viewRunner(this.runners, deployment),
      answeredAt: (deploymentId) => observations.answeredAt(deploymentId),
    });
  }
}

function createCache(
  { cache }: GatewayConfig,
  { cacheRedis }: Connections,
): ResponseCache {
  return cacheRedis === null
    ? createMemoryResponseCache(createMemoryCache(), cache)
    : createRedisResponseCache(cacheRedis, cache);
}
