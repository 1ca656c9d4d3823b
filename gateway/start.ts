import type { Server } from "node:net";
import type { Logger } from "pino";
import {
  formatProblem,
  type GatewayConfig,
  type LoadResult,
} from "./config/load.ts";
import { openConnections } from "./connections.ts";
import type { Gateway } from "./gateway.ts";
import { watchConnections } from "./http/connections.ts";
import { addRoutes } from "./http/routes.ts";
import { createServer } from "./http/server.ts";
import { routeUpgrades } from "./http/upgrade.ts";
import { openJournal, type Journal } from "./journal/journal.ts";
import type { Intent, Outcome } from "./ledger/records.ts";
import { listen } from "./listen.ts";
import { GatewayParts } from "./parts.ts";
import {
  createPriceBook,
  readPricesFile,
  type PriceBook,
} from "./pricing/prices.ts";
import { StartError } from "./start-error.ts";
import { drain, stopParts } from "./stop.ts";
import { openTraces } from "./tracing/open.ts";

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly port: number;
  /** The socket that it listens on. */
  readonly listener: Server;
  /**
   * Answers 503 on readiness, finishes running calls, brings the journal into the ledger and closes all connections. Before
   * that it continues to serve for `noticeMs`, or for the configured time if that is longer.
   */
  stop(noticeMs?: number): Promise<void>;
}

export interface StartOptions {
  readonly config: GatewayConfig;
  /** Reads the configuration again, for a reload. */
  readonly readConfig: () => LoadResult;
  readonly log: Logger;
  readonly version: string;
  /** Holds the key variables of providers, for models of the database. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A listening socket that was handed over. */
  readonly listenFd?: number | undefined;
}

/**
 * Starts all parts and listens. The database may be unavailable: until it is there, liveliness answers and calls get 503.
 * Throws {@link StartError}.
 */
export async function startGateway(
  options: StartOptions,
): Promise<RunningGateway> {
  const { config, log, listenFd } = options;
  const journal = await openGatewayJournal(config, log);
  const connections = await openConnections(config, log);
  const prices = openPrices(config.general.pricesFile);
  const traces = await openTraces(config.tracing, options.version, log);
  const parts = new GatewayParts(options, journal, connections, prices, traces);
  const server = createServer({
    ...config.server,
    bodies: parts.bodies,
    log,
  });
  const clients = watchConnections(server.server);
  server.addHook("onRequest", async (_request, reply) => {
    if (parts.stopping()) {
      reply.raw.shouldKeepAlive = false;
    }
  });
  addRoutes(server, parts);
  routeUpgrades(server);
  const port = await listen(server, config.server, listenFd, parts.database);
  log.info({ host: config.server.host, port }, "listening");
  return {
    gateway: parts,
    port,
    listener: server.server,
    async stop(noticeMs = 0) {
      await drain(parts, server, clients, noticeMs);
      await stopParts(parts, connections);
    },
  };
}

function openPrices(file: string | null): PriceBook {
  if (file === null) {
    return createPriceBook(null);
  }
  const read = readPricesFile(file);
  if (read.ok) {
    return createPriceBook(read.prices);
  }
  throw new StartError(read.problems.map(formatProblem).join("\n"));
}

/** Free text that is shortened when a record would exceed its size limit in the journal; amounts never are. */
const FREE_TEXT = ["metadata", "sessionId", "requesterIp"] as const;

async function openGatewayJournal(
  config: GatewayConfig,
  log: Logger,
): Promise<Journal<Intent, Outcome>> {
  const { directory, sync, limitBytes, keepMs } = config.journal;
  try {
    return await openJournal<Intent, Outcome>({
      dir: directory,
      limitBytes,
      keepMs,
      sync,
      freeText: FREE_TEXT,
      now: Date.now,
      log,
    });
  } catch (error) {
    throw new StartError((error as Error).message);
  }
}
