import type { Server } from "node:http";
import type { Logger } from "pino";
import { watchConnections } from "../core/client-connections.ts";
import { formatProblem } from "../core/config/problem.ts";
import type { GatewayConfig } from "./config/types.ts";
import type { LoadResult } from "./config/load.ts";
import { openConnections } from "./connections.ts";
import type { Gateway } from "./gateway.ts";
import { addRoutes } from "./http/routes.ts";
import { createServer } from "./http/server.ts";
import { routeUpgrades } from "./http/upgrade.ts";
import { listen, takeConnections } from "./listen.ts";
import { openGatewayJournal } from "./open-journal.ts";
import { GatewayParts } from "./parts.ts";
import { createPriceBook, type PriceBook } from "./pricing/prices.ts";
import { readPricesFile } from "./pricing/price-file.ts";
import { StartError } from "./start-error.ts";
import { drain, giveNotice, stopParts } from "./stop.ts";
import { openTraces } from "./tracing/open.ts";
import type { WorkerGroup } from "./workers/group.ts";
import { RemovedWorkers } from "./workers/removed.ts";

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly port: number;
  /** The socket that it listens on; a worker's gets its connections from the primary process. */
  readonly listener: Server;
  /** From now on readiness answers 503, and connections end with their answers. */
  beginStopping(): void;
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
  /** The workers that serve the same port, whose connections the primary process accepts. */
  readonly group?: WorkerGroup | undefined;
  /** Among these, from 1. */
  readonly worker?: number | undefined;
}

/**
 * Starts all parts and listens. The database may be unavailable: until it is there, liveliness answers and calls get 503.
 * Throws {@link StartError}.
 */
export async function startGateway(
  options: StartOptions,
): Promise<RunningGateway> {
  const { config, log, listenFd } = options;
  const removed =
    (options.worker ?? 1) === 1 ? new RemovedWorkers(config, log) : null;
  await removed?.drainBeforeStart();
  const journal = await openGatewayJournal(config.journal, log);
  const connections = await openConnections(config, log);
  const prices = openPrices(config.general.pricesFile);
  const traces = await openTraces(config.tracing, options.version, log);
  const parts = new GatewayParts(options, journal, connections, prices, traces);
  const server = createServer({
    ...config.server,
    bodies: parts.bodies,
    log,
    version: options.version,
  });
  const clients = watchConnections(server.server, log);
  server.addHook("onRequest", async (_request, reply) => {
    if (parts.stopping()) {
      reply.raw.shouldKeepAlive = false;
    }
  });
  addRoutes(server, parts);
  routeUpgrades(server, clients);
  const port =
    options.group === undefined
      ? await listen(server, config.server, listenFd, parts.database)
      : await takeConnections(server, config.server.port);
  if (options.group === undefined) {
    log.info({ host: config.server.host, port }, "listening");
  }
  removed?.drainInBackground();
  return {
    gateway: parts,
    port,
    listener: server.server,
    beginStopping: () => parts.beginStopping(),
    async stop(noticeMs = 0) {
      // The primary process has given workers their notice.
      await (options.group === undefined && giveNotice(parts, noticeMs));
      await drain(parts, server, clients);
      await removed?.stop();
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
