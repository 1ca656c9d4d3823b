import { setTimeout as sleep } from "node:timers/promises";
import type { AddressInfo, Server } from "node:net";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { createCallers } from "./access/callers.ts";
import { openJournal, type Journal } from "./journal/journal.ts";
import { createLedger } from "./ledger/ledger.ts";
import { createLimits } from "./limits/create.ts";
import { findEviction } from "./limits/eviction.ts";
import { countersOfKey, proxyLimitsOf } from "./ledger/payers.ts";
import { createPendingSums } from "./ledger/pending.ts";
import {
  createPriceBook,
  readPricesFile,
  type PriceBook,
} from "./pricing/prices.ts";
import type { Intent, Outcome } from "./ledger/records.ts";
import { createRetention } from "./ledger/retention.ts";
import { createTokenCounter } from "./tokens/tokens.ts";
import { windowAt } from "./ledger/windows.ts";
import {
  createMemoryResponseCache,
  createRedisResponseCache,
} from "./cache/cache.ts";
import { createFlights } from "./cache/flights.ts";
import { createMemoryCache } from "./cache/memory.ts";
import { connectCacheRedis, connectRedis } from "./cache/redis.ts";
import { tryDeployment } from "./calls/health-check.ts";
import { createRefusalLog } from "./calls/refusal-log.ts";
import { createPromptLog } from "./calls/prompt-log.ts";
import { createCallsUnderWay } from "./calls/underway.ts";
import { sameDatabase } from "./config/database-url.ts";
import { diffConfig } from "./config/diff.ts";
import {
  formatProblem,
  type GatewayConfig,
  type LoadResult,
} from "./config/load.ts";
import { adjustedSince } from "./database/adjustments.ts";
import { watchDatabase } from "./database/connection.ts";
import { recordDeployments } from "./database/deployments.ts";
import { createPool, followLogin } from "./database/pool.ts";
import { createPartitionKeeper } from "./database/partitions.ts";
import { followSettings } from "./database/settings.ts";
import type { Gateway } from "./gateway.ts";
import { addRoutes } from "./http/routes.ts";
import { watchConnections } from "./http/connections.ts";
import { createServer } from "./http/server.ts";
import { createCallMetrics } from "./metrics/call-metrics.ts";
import { createProviderClient } from "./providers/client.ts";
import { createCatalog } from "./routing/catalog.ts";
import { createCooldowns } from "./routing/cooldowns.ts";
import { createModelHealth } from "./routing/health.ts";
import { createStoredModels } from "./routing/stored-models.ts";
import { createObservations } from "./routing/strategies.ts";
import { createMemoryUsage, createRedisUsage } from "./routing/usage.ts";

/** The gateway cannot start; the message is the sentence for the operator. */
export class StartRefused extends Error {}

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly port: number;
  /** The socket that it listens on. */
  readonly listener: Server;
  /**
   * Says 503 on readiness, finishes what runs, brings the journal into the ledger, lets go of everything. Before that it goes on
   * serving for `noticeMs`, or as long as its configuration says when that is longer.
   */
  stop(noticeMs?: number): Promise<void>;
}

export interface StartOptions {
  readonly config: GatewayConfig;
  /** Reads the configuration again, for a reload. */
  readonly readConfig: () => LoadResult;
  readonly log: Logger;
  readonly version: string;
  /** Where providers' own key variables are read for models of the database. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A listening socket that was handed over: calls that wait on it must not meet a gateway without its database. */
  readonly listenFd?: number | undefined;
}

/** For the errors of calls that the drain ended. */
const LAST_ANSWERS_MS = 1_000;
/** How long calls that wait on a socket taken over may wait for the database. */
const READY_BEFORE_LISTENING_MS = 30_000;
/** Brings the ledger up to date at the end, but a database that is away must not hold up the stop: the journal keeps it. */
const LAST_FLUSH_MS = 5_000;
/** Spends set by an admin so long before the connection came back are read again: nobody told of them. */
const MISSED_MS = 86_400_000;

/** Starts all parts and listens. The database may be away: then liveliness answers and calls get 503 until it is there. */
export async function startGateway({
  readConfig,
  config,
  log,
  version,
  env,
  listenFd,
}: StartOptions): Promise<RunningGateway> {
  const journal = await openGatewayJournal(config, log);
  let databaseUrl = config.database.url.reveal();
  const { poolSize } = config.database;
  const callConnections = Math.max(1, Math.floor(poolSize / 2));
  const pool = createPool(
    databaseUrl,
    Math.max(1, poolSize - callConnections),
    log,
  );
  const callPool = createPool(databaseUrl, callConnections, log, "calls");
  const connected = (connect: typeof connectRedis): Redis | null =>
    config.redis === null
      ? null
      : connect(
          {
            host: config.redis.host,
            port: config.redis.port,
            ...(config.redis.password === null
              ? {}
              : { password: config.redis.password.reveal() }),
            ca: config.redis.ca,
          },
          (error) =>
            log.debug({ error: error.message }, "no connection to Redis"),
        );
  const redis = connected(connectRedis);
  if (redis !== null) {
    await refuseEviction(redis, log);
  }
  const cacheRedis =
    config.cache.kind === "redis" ? connected(connectCacheRedis) : null;
  const memoryCache = createMemoryCache();
  const cache =
    cacheRedis !== null
      ? createRedisResponseCache(cacheRedis, config.cache)
      : createMemoryResponseCache(memoryCache, config.cache);
  const limits = createLimits({
    instance: journal.instance,
    failClosed: config.general.failClosed,
    leastInstances: () => database.instances(),
    onAway: (reason) =>
      log.error(
        { reason },
        "Redis is away: limits are kept in process, at this instance's share",
      ),
    onBack: () => log.info("Redis is back: limits are shared again"),
    ...(redis === null ? {} : { redis }),
  });
  const metrics = createCallMetrics(config.general.metricsLabelValues);
  const { timezone } = config.general;
  const callers = createCallers(callPool, config.general.keyCacheMs, {
    async key(key) {
      const proxy = proxyLimitsOf(live.config.general);
      await ledger.totals.prepare(
        countersOfKey(key, proxy, Date.now(), timezone),
      );
    },
    async payer(entity, { maxBudget, budgetDuration }) {
      if (maxBudget === null) {
        return;
      }
      const window = windowAt(budgetDuration, Date.now(), timezone).name;
      await ledger.totals.prepare([{ entity, window }]);
    },
  });
  const pending = createPendingSums();
  const prices = openPrices(config.general.pricesFile);
  const ledger = createLedger({
    pool,
    callPool,
    journal,
    limits,
    pending,
    timeZone: timezone,
    proxyDuration: config.general.budgetDuration,
    databaseConnected: () => database.connected(),
    onSoftBudget: metrics.softBudgetReached,
    log,
  });
  const retention = createRetention({
    pool,
    config: () => live.config.general.retention,
    log,
  });
  const partitions = createPartitionKeeper(pool, log);
  const tokens = createTokenCounter();
  let stopping = false;
  const database = watchDatabase({
    databaseUrl: () => databaseUrl,
    pool,
    callPool,
    log,
    shared: redis !== null,
    onChange(table, id) {
      if (table === "models") {
        return void readModels();
      }
      if (table !== "spend_totals") {
        return callers.changed(table, id);
      }
      ledger.totals
        .reload([id])
        .catch((error: unknown) =>
          log.warn(
            { error },
            "a total that an admin changed could not be read",
          ),
        );
    },
    onReconnect() {
      callers.forgetAll();
      void readModels();
      adjustedSince(pool, Date.now() - MISSED_MS)
        .then((entities) => ledger.totals.reload(entities))
        .catch((error: unknown) =>
          log.warn({ error }, "totals that an admin changed could not be read"),
        );
    },
    async onReady() {
      await gateway.reloadModels();
      await followSettings(
        pool,
        {
          timeZone: config.general.timezone,
          proxyDuration: config.general.budgetDuration,
        },
        Date.now(),
      );
      await partitions.start();
      await ledger.start();
      limits.formerLifeDrained();
      retention.start();
      // Tokenizers are loaded behind the start: until then counts are bounds by size.
      tokens
        .warm(config.models.map(({ baseModel, model }) => baseModel ?? model))
        .catch((error: unknown) =>
          log.warn({ error }, "a tokenizer could not be loaded"),
        );
    },
    onRefused() {
      process.stderr.write(
        "hearth: another gateway without Redis uses this database: set REDIS_HOST for both, or stop the other one.\n",
      );
      process.exit(1);
    },
  });
  const stored = createStoredModels({
    pool,
    keys: () => live.config.general,
    env,
    log,
  });
  const catalogOf = ({ models, router }: GatewayConfig) =>
    createCatalog(
      [...models, ...stored.deployments()],
      prices,
      router.modelGroupAlias,
    );
  let live = { config, catalog: catalogOf(config) };
  const recordModels = () =>
    recordDeployments(pool, live.catalog.deployments).catch((error: unknown) =>
      log.warn({ error }, "deployments were not recorded"),
    );
  const readModels = () =>
    gateway
      .reloadModels()
      .catch((error: unknown) =>
        log.warn({ error }, "models of the database could not be read"),
      );
  const gateway: Gateway = {
    get config() {
      return live.config;
    },
    get catalog() {
      return live.catalog;
    },
    log,
    pool,
    callPool,
    database,
    callers,
    limits,
    metrics,
    journal,
    pending,
    ledger,
    tokens,
    cache,
    flights: createFlights(),
    underWay: createCallsUnderWay(limits),
    refusals: createRefusalLog(pool, log),
    prompts: createPromptLog(pool, log),
    providers: createProviderClient(config.timeouts),
    router: {
      get config() {
        return live.config.router;
      },
      get catalog() {
        return live.catalog;
      },
      cooldowns: createCooldowns({
        router: () => live.config.router,
        redis,
        log,
        onCooldown: metrics.cooledDown,
      }),
      usage: redis === null ? createMemoryUsage() : createRedisUsage(redis),
      observations: createObservations(),
    },
    modelHealth: createModelHealth(
      () => live.catalog.deployments,
      (deployment) => tryDeployment(gateway, deployment),
      (deployment) => gateway.router.cooldowns.stateOf(deployment.id),
      (deploymentId) => gateway.router.observations.answeredAt(deploymentId),
    ),
    version,
    startedAtSeconds: Math.floor(Date.now() / 1_000),
    readConfig,
    async reload() {
      const read = readConfig();
      if (!read.ok) {
        return read;
      }
      const diff = diffConfig(live.config, read.config);
      live = { config: read.config, catalog: catalogOf(read.config) };
      const login = read.config.database.url.reveal();
      if (sameDatabase(databaseUrl, login)) {
        databaseUrl = login;
        followLogin(pool, login);
        followLogin(callPool, login);
      }
      await recordModels();
      log.info(diff, "the configuration was read again");
      return { ok: true, diff };
    },
    async reloadModels() {
      if (!live.config.general.storeModelInDb) {
        return;
      }
      await stored.load();
      live = { ...live, catalog: catalogOf(live.config) };
      await recordModels();
    },
    env,
    stopping: () => stopping,
  };
  const server = createServer({ ...config.server, log });
  const connections = watchConnections(server.server);
  server.addHook("onRequest", async (_request, reply) => {
    if (stopping) {
      reply.raw.shouldKeepAlive = false;
    }
  });
  addRoutes(server, gateway);

  async function stop(noticeMs = 0): Promise<void> {
    stopping = true;
    log.info({ running: gateway.underWay.count() }, "stopping");
    const { drainNoticeMs, drainTimeoutMs } = live.config.server;
    await sleep(Math.max(drainNoticeMs, noticeMs));
    const closed = Promise.resolve(server.close());
    connections.closeIdle();
    await within(drainTimeoutMs, closed);
    gateway.underWay.abortAll();
    await within(LAST_ANSWERS_MS, closed);
    connections.closeAll();
    await closed;
    await Promise.race([
      ledger.flush().catch(() => undefined),
      sleep(LAST_FLUSH_MS, undefined, { ref: false }),
    ]);
    await ledger.stop();
    await Promise.race([
      Promise.all([gateway.refusals.stop(), gateway.prompts.stop()]),
      sleep(LAST_FLUSH_MS, undefined, { ref: false }),
    ]);
    retention.stop();
    partitions.stop();
    gateway.underWay.stop();
    gateway.router.cooldowns.stop();
    await limits.close();
    redis?.disconnect();
    cacheRedis?.disconnect();
    await database.stop();
    await gateway.providers.close();
    await journal.close();
    await Promise.all([pool.end(), callPool.end()]);
    log.info("stopped");
  }

  try {
    if (listenFd === undefined) {
      await server.listen({
        host: config.server.host,
        port: config.server.port,
      });
    } else {
      await server.ready();
      const deadline = Date.now() + READY_BEFORE_LISTENING_MS;
      while (!database.ready() && Date.now() < deadline) {
        await sleep(10);
      }
      await new Promise<void>((resolve, reject) => {
        server.server.once("error", reject);
        server.server.listen({ fd: listenFd }, resolve);
      });
    }
  } catch (error) {
    const reason =
      (error as { code?: string }).code === "EADDRINUSE"
        ? "another program uses it"
        : (error as Error).message;
    throw new StartRefused(
      `cannot listen on ${config.server.host}:${config.server.port} (${reason}): stop that program, or set HEARTH_GATEWAY_PORT.`,
    );
  }
  const { port } = server.server.address() as AddressInfo;
  log.info({ host: config.server.host, port }, "listening");
  return { gateway, port, listener: server.server, stop };
}

/** Until it is done, or so long. */
async function within(ms: number, done: Promise<unknown>): Promise<void> {
  const late = new AbortController();
  await Promise.race([
    done,
    sleep(ms, undefined, { signal: late.signal }).catch(() => undefined),
  ]);
  late.abort();
}

async function refuseEviction(redis: Redis, log: Logger): Promise<void> {
  const problem = await findEviction(redis, (later) => log.error(later));
  if (problem === null) {
    return;
  }
  redis.disconnect();
  throw new StartRefused(problem);
}

function openPrices(file: string | null): PriceBook {
  if (file === null) {
    return createPriceBook(null);
  }
  const read = readPricesFile(file);
  if (read.ok) {
    return createPriceBook(read.prices);
  }
  throw new StartRefused(read.problems.map(formatProblem).join("\n"));
}

/** Free text that is shortened where a record would outgrow its room in the journal; money never is. */
const FREE_TEXT = ["metadata", "sessionId", "requesterIp"] as const;

async function openGatewayJournal(
  config: GatewayConfig,
  log: Logger,
): Promise<Journal<Intent, Outcome>> {
  const { directory, sync, limitBytes } = config.journal;
  try {
    return await openJournal<Intent, Outcome>({
      dir: directory,
      limitBytes,
      sync,
      freeText: FREE_TEXT,
      now: Date.now,
      log,
    });
  } catch (error) {
    throw new StartRefused((error as Error).message);
  }
}
