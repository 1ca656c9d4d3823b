import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { GatewayConfig } from "../config/types.ts";
import { sessionUrlOf } from "../config/database.ts";
import { openConnections, type Connections } from "../connections.ts";
import { watchDatabase } from "../database/connection.ts";
import { Ledger } from "../ledger/ledger.ts";
import { createPendingSums } from "../ledger/pending.ts";
import type { Intent, Outcome } from "../ledger/records.ts";
import type { Journal } from "../journal/journal-types.ts";
import { lastConfirmedAt } from "../journal/journal-mark.ts";
import { createLimits } from "../limits/create.ts";
import type { Limits } from "../limits/limits.ts";
import { openGatewayJournal } from "../open-journal.ts";
import { StartError } from "../start-error.ts";
import { removedJournals } from "./journals.ts";

const DRAINED_WITHIN_MS = 20_000;
const RETRY_AFTER_MS = 30_000;
const POLL_MS = 20;
const CONNECTIONS = 2;

/**
 * Brings the journals of workers that no longer exist into the ledger, each under the name of its own instance, as if that
 * worker had started once more without taking calls.
 */
export class RemovedWorkers {
  readonly #config: GatewayConfig;
  readonly #log: Logger;
  readonly #stopped = new AbortController();
  #draining: Promise<void> = Promise.resolve();

  constructor(config: GatewayConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
  }

  /** Without Redis, budgets count what the ledger has at the start: nothing may be added to it later. Throws {@link StartError}. */
  async drainBeforeStart(): Promise<void> {
    if (this.#config.redis === null) {
      for (const directory of await this.#directories()) {
        await this.#drain(directory);
      }
    }
  }

  /** With Redis, what is not drained counts in budgets: calls do not wait, and an attempt that fails is repeated. */
  drainInBackground(): void {
    if (this.#config.redis !== null) {
      this.#draining = this.#drainUntilDone();
    }
  }

  /** Resolves when nothing is drained any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#draining;
  }

  #directories(): Promise<readonly string[]> {
    const { journal, server } = this.#config;
    return removedJournals(journal.directory, server.workers);
  }

  async #drainUntilDone(): Promise<void> {
    const { signal } = this.#stopped;
    const left = new Set(await this.#directories());
    while (left.size > 0 && !signal.aborted) {
      for (const directory of left) {
        try {
          await this.#drain(directory);
          left.delete(directory);
        } catch (error) {
          if (signal.aborted) {
            return;
          }
          this.#log.error(
            { error: (error as Error).message },
            "the journal of a removed worker is not in the ledger yet",
          );
        }
      }
      if (left.size > 0) {
        await sleep(RETRY_AFTER_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #drain(directory: string): Promise<void> {
    const config = {
      ...this.#config,
      journal: { ...this.#config.journal, directory },
      database: { ...this.#config.database, poolSize: CONNECTIONS },
    };
    const confirmedAt = lastConfirmedAt(directory) ?? -Infinity;
    const journal = await openGatewayJournal(config.journal, this.#log);
    // Else it is kept for a database that loses rows, until a later start.
    const isOver =
      journal.state().pendingRecords === 0 &&
      Date.now() - confirmedAt > config.journal.keepMs;
    try {
      if (!isOver) {
        const connections = await openConnections(config, this.#log);
        await intoLedger(
          journal,
          { config, connections, log: this.#log },
          this.#stopped.signal,
        );
        this.#log.info(
          { directory },
          "the journal of a removed worker is in the ledger",
        );
      }
    } finally {
      await journal.close();
    }
    if (isOver) {
      await rm(directory, { recursive: true, force: true });
    }
  }
}

interface Ports {
  readonly config: GatewayConfig;
  readonly connections: Connections;
  readonly log: Logger;
}

async function intoLedger(
  journal: Journal<Intent, Outcome>,
  { config, connections, log }: Ports,
  stopped: AbortSignal,
): Promise<void> {
  const { pool, callPool, sessionPool, redis, cacheRedis } = connections;
  const { general } = config;
  const limits = createLimits({
    instance: journal.instance,
    failClosed: general.failClosed,
    undrained: () => journal.state().pendingRecords,
    ...(redis === null ? {} : { redis }),
  });
  const ledger = new Ledger({
    pool,
    callPool,
    journal,
    limits,
    pending: createPendingSums(),
    timeZone: general.timezone,
    proxyDuration: general.budgetDuration,
    databaseConnected: () => database.connected(),
    onSoftBudget: () => undefined,
    log,
  });
  let rejected: string | null = null;
  const database = watchDatabase({
    sessionUrl: () => sessionUrlOf(config.database),
    pool,
    callPool,
    sessionPool,
    log,
    shared: redis !== null,
    onChange: () => undefined,
    onReconnect: () => undefined,
    onReady: async () => {
      await ledger.start();
      limits.previousProcessDrained();
    },
    onRejected: (problem) => (rejected ??= problem),
  });
  try {
    const isDrained = () => database.ready() && hasNoSpendLeft(journal, limits);
    if (!(await reached(isDrained, () => rejected !== null, stopped))) {
      throw new StartError(
        rejected ??
          `the journal of a removed worker could not be written to the ledger within ${DRAINED_WITHIN_MS / 1_000} s: make Postgres and Redis available, and start again.`,
      );
    }
  } finally {
    await ledger.stop();
    await limits.close();
    redis?.disconnect();
    cacheRedis?.disconnect();
    await database.stop();
    const pools = new Set([pool, callPool, sessionPool]);
    await Promise.all([...pools].map((one) => one.end()));
  }
}

/** Neither in its journal nor, under the name of its instance, in Redis. */
async function hasNoSpendLeft(
  journal: Journal<Intent, Outcome>,
  limits: Limits,
): Promise<boolean> {
  if (journal.state().pendingRecords > 0 || limits.mode() === "redis_away") {
    return false;
  }
  const instances = await limits.instances().catch(() => null);
  return (
    instances !== null &&
    instances.every(
      ({ instance, budgets }) => instance !== journal.instance || budgets === 0,
    )
  );
}

async function reached(
  isReached: () => boolean | Promise<boolean>,
  isHopeless: () => boolean,
  stopped: AbortSignal,
): Promise<boolean> {
  const deadline = performance.now() + DRAINED_WITHIN_MS;
  while (performance.now() < deadline && !isHopeless() && !stopped.aborted) {
    if (await isReached()) {
      return true;
    }
    await sleep(POLL_MS);
  }
  return false;
}
