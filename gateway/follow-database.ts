import type { Logger } from "pino";
import { DAY_MS } from "../core/duration.ts";
import type { Callers } from "./access/caller-lookups.ts";
import type { GatewayConfig } from "./config/types.ts";
import { adjustedSince } from "./database/adjustments.ts";
import {
  watchDatabase,
  type DatabaseOptions,
  type DatabaseState,
} from "./database/connection.ts";
import type { PartitionKeeper } from "./database/partitions.ts";
import type { Pool } from "./database/pool.ts";
import { followSettings } from "./database/settings.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Retention } from "./ledger/retention.ts";
import type { Limits } from "./limits/limits.ts";
import type { LiveConfig } from "./live-config.ts";
import type { TokenCounter } from "./tokens/tokens.ts";

/** The parts that start with the database or keep what they read from it. */
interface DatabaseFollowers {
  readonly log: Logger;
  readonly startConfig: GatewayConfig;
  readonly live: LiveConfig;
  readonly pool: Pool;
  readonly callPool: Pool;
  readonly sessionPool: Pool;
  readonly isShared: boolean;
  readonly callers: Callers;
  readonly ledger: Ledger;
  readonly limits: Limits;
  readonly partitions: PartitionKeeper;
  readonly retention: Retention;
  readonly tokens: TokenCounter;
}

/** After a reconnection, spends that an admin set within this time are read again: their notifications were missed. */
const MISSED_MS = DAY_MS;

/** Connects to the database, starts what needs it once it is ready, and keeps what was read from it current. */
export function followDatabase(parts: DatabaseFollowers): DatabaseState {
  const { live, pool, callPool, sessionPool, log } = parts;
  return watchDatabase({
    sessionUrl: () => live.sessionUrl,
    pool,
    callPool,
    sessionPool,
    log,
    shared: parts.isShared,
    onChange: changeHandler(parts),
    onReconnect: reconnectHandler(parts),
    onReady: () => startWithDatabase(parts),
    onRejected(problem) {
      process.stderr.write(`hearth: ${problem}\n`);
      process.exit(1);
    },
  });
}

/** Reads again what changed, here or on another instance. */
function changeHandler({
  callers,
  ledger,
  live,
  log,
}: DatabaseFollowers): DatabaseOptions["onChange"] {
  return (table, id) => {
    switch (table) {
      case "models":
      case "credentials":
      case "blocked_models":
        readModels({ live, log });
        break;
      case "spend_totals":
        ledger.totals
          .reload([id])
          .catch((error: unknown) =>
            log.warn({ error }, "an adjusted total could not be read"),
          );
        break;
      default:
        callers.changed(table, id);
    }
  };
}

/** Reads everything again whose notifications may have been missed. */
function reconnectHandler({
  callers,
  ledger,
  live,
  pool,
  log,
}: DatabaseFollowers): () => void {
  return () => {
    callers.clear();
    readModels({ live, log });
    adjustedSince(pool, Date.now() - MISSED_MS)
      .then((entities) => ledger.totals.reload(entities))
      .catch((error: unknown) =>
        log.warn({ error }, "adjusted totals could not be read"),
      );
  };
}

function readModels({
  live,
  log,
}: Pick<DatabaseFollowers, "live" | "log">): void {
  live
    .reloadModels()
    .catch((error: unknown) =>
      log.warn({ error }, "models of the database could not be read"),
    );
}

async function startWithDatabase(parts: DatabaseFollowers): Promise<void> {
  const { live, pool, log, tokens } = parts;
  const { general, models } = parts.startConfig;
  await live.reloadModels();
  await followSettings(
    pool,
    { timeZone: general.timezone, proxyDuration: general.budgetDuration },
    Date.now(),
  );
  await live.recordBudget();
  await parts.partitions.start();
  await parts.ledger.start();
  parts.limits.previousProcessDrained();
  parts.retention.start();
  // Tokenizers are loaded in the background: until then counts are upper bounds by size.
  tokens
    .warm(models.map(({ baseModel, model }) => baseModel ?? model))
    .catch((error: unknown) =>
      log.warn({ error }, "a tokenizer could not be loaded"),
    );
}
