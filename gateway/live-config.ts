import type { Logger } from "pino";
import { sameDatabase } from "./config/database-url.ts";
import { sessionUrlOf } from "./config/database.ts";
import { diffConfig } from "./config/diff.ts";
import { formatProblem } from "../core/config/problem.ts";
import type { GatewayConfig } from "./config/types.ts";
import type { LoadResult } from "./config/load.ts";
import type { Connections } from "./connections.ts";
import { recordDeployments } from "./database/deployments.ts";
import { followLogin } from "./database/pool.ts";
import { recordProxyBudget } from "./database/settings.ts";
import type { Reloaded } from "./gateway.ts";
import type { PriceBook } from "./pricing/prices.ts";
import { Catalog } from "./routing/catalog.ts";
import {
  createStoredModels,
  type StoredModels,
} from "./routing/stored-models.ts";

export interface LiveConfigOptions {
  readonly config: GatewayConfig;
  readonly readConfig: () => LoadResult;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

/** The current configuration and catalog: a reload replaces both. */
export class LiveConfig {
  readonly #options: LiveConfigOptions;
  readonly #connections: Connections;
  readonly #prices: PriceBook;
  readonly #stored: StoredModels;
  #config: GatewayConfig;
  #catalog: Catalog;
  #databaseUrl: string;
  #sessionUrl: string;

  constructor(
    options: LiveConfigOptions,
    connections: Connections,
    prices: PriceBook,
  ) {
    const { config, env, log } = options;
    this.#options = options;
    this.#connections = connections;
    this.#prices = prices;
    this.#stored = createStoredModels({
      pool: connections.pool,
      keys: () => this.#config.general,
      env,
      log,
    });
    this.#config = config;
    this.#catalog = this.#catalogOf(config);
    this.#databaseUrl = config.database.url.reveal();
    this.#sessionUrl = sessionUrlOf(config.database);
  }

  get config(): GatewayConfig {
    return this.#config;
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** For connections that need a session: the direct address, if there are two. */
  get sessionUrl(): string {
    return this.#sessionUrl;
  }

  /** Reads the configuration again; an invalid one changes nothing. */
  async reload(): Promise<Reloaded> {
    const read = this.#options.readConfig();
    if (!read.ok) {
      return read;
    }
    const { log } = this.#options;
    const diff = diffConfig(this.#config, read.config);
    this.#config = withWindowsOf(this.#config, read.config);
    this.#catalog = this.#catalogOf(this.#config);
    this.#followLogins(this.#config);
    // Provider keys that the previous master key sealed are sealed again while it is known.
    await this.#loadStored().catch((error: unknown) =>
      log.warn({ error }, "models of the database could not be read again"),
    );
    await this.#recordDeployments();
    await this.recordBudget();
    const { warnings } = read;
    log.info(
      { ...diff, warnings: warnings.map(formatProblem) },
      "configuration reloaded",
    );
    return { ok: true, diff, warnings };
  }

  /** Reads the models of the database again. */
  async reloadModels(): Promise<void> {
    if (!this.#config.general.storeModelInDb) {
      return;
    }
    await this.#loadStored();
    await this.#recordDeployments();
  }

  /** For reports; calls do not need it. */
  async recordBudget(): Promise<void> {
    const { maxBudget } = this.#config.general;
    await recordProxyBudget(this.#connections.pool, maxBudget).catch(
      (error: unknown) =>
        this.#options.log.warn(
          { error },
          "the budget of the whole gateway could not be recorded",
        ),
    );
  }

  async #loadStored(): Promise<void> {
    if (this.#config.general.storeModelInDb) {
      await this.#stored.load();
      this.#catalog = this.#catalogOf(this.#config);
    }
  }

  /** A rotated login of the same database applies to new connections. */
  #followLogins(config: GatewayConfig): void {
    const { pool, callPool, sessionPool } = this.#connections;
    const login = config.database.url.reveal();
    if (sameDatabase(this.#databaseUrl, login)) {
      this.#databaseUrl = login;
      followLogin(pool, login);
      followLogin(callPool, login);
    }
    const sessionLogin = sessionUrlOf(config.database);
    if (sameDatabase(this.#sessionUrl, sessionLogin)) {
      this.#sessionUrl = sessionLogin;
      followLogin(sessionPool, sessionLogin);
    }
  }

  #catalogOf({ models, router }: GatewayConfig): Catalog {
    return new Catalog(
      [
        ...models.map((model) => this.#stored.withStored(model)),
        ...this.#stored.deployments(),
      ],
      this.#prices,
      router.modelGroupAlias,
    );
  }

  async #recordDeployments(): Promise<void> {
    try {
      await recordDeployments(
        this.#connections.pool,
        this.#catalog.deployments,
      );
    } catch (error) {
      this.#options.log.warn({ error }, "deployments could not be recorded");
    }
  }
}

/** Sums by window would change their meaning under way: what decides windows changes at the next start. */
function withWindowsOf(
  { general: { timezone, budgetDuration } }: GatewayConfig,
  config: GatewayConfig,
): GatewayConfig {
  return {
    ...config,
    general: { ...config.general, timezone, budgetDuration },
  };
}
