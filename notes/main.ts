import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  claimDataDirectory,
  directoryFailure,
  type DataDirectory,
} from "./data-directory.ts";
import { onStopSignals } from "../core/signals.ts";
import {
  openDatabases,
  type Databases,
  type DatabasesOptions,
} from "./databases.ts";
import { openLog, type Log } from "./log.ts";
import { readOptions, type Options } from "./options.ts";
import {
  openLatestIncidents,
  type LatestIncidents,
} from "./latest-incidents.ts";
import { createNotesServer } from "./server.ts";
import { readSettings } from "./settings.ts";

/** Time for running requests to finish after a stop signal; then connections are cut. */
const STOP_MS = 8_000;
const FORCED_STOP_MS = 9_500;

await main();

async function main(): Promise<void> {
  const log = openLog(process.env.HEARTH_LOG_LEVEL ?? "info");
  try {
    await start(readOptions(process.argv.slice(2), process.env), log);
  } catch (failure) {
    process.stderr.write(`notes: ${(failure as Error).message}\n`);
    process.exit(1);
  }
}

async function start(options: Options, log: Log): Promise<void> {
  const directory = claimDataDirectory(options.dataDirectory);
  const settings = readSettings(options.iniFile, options.dataDirectory);
  const restarts = openLatestIncidents();
  const storageFailures = openLatestIncidents();
  const databases = await openDatabases({
    directory: directory.databases,
    spoolDirectory: directory.spool,
    passwordIterations: settings.passwordIterations(),
    watchdogMs: settings.watchdogMs(),
    historyMaxBytes: settings.historyMaxBytes(),
    idleMs: settings.idleMs(),
    events: eventsOf(log, restarts, storageFailures),
  }).catch((failure: unknown) => {
    throw (failure as NodeJS.ErrnoException).code === undefined
      ? failure
      : new Error(directoryFailure(options.dataDirectory, failure));
  });
  const stopping = new AbortController();
  const server = createNotesServer({
    settings,
    databases,
    restarts,
    storageFailures,
    log,
    spoolDirectory: directory.spool,
    stopping: stopping.signal,
  });
  await listen(server, options);
  const { address, port } = server.address() as AddressInfo;
  log.info(
    { address, port, pid: process.pid, databases: databases.names().length },
    "notes store started",
  );
  onStopSignals(
    (signal) => {
      log.info({ signal }, "notes store stopping");
      void stop(server, databases, directory, stopping, log);
    },
    () => process.exit(1),
  );
}

function eventsOf(
  log: Log,
  restarts: LatestIncidents,
  storageFailures: LatestIncidents,
): DatabasesOptions["events"] {
  return {
    readOnly: (database) =>
      log.warn(
        { database },
        "database opened read-only: the disk is full; writes are accepted again once space is free",
      ),
    compacted: (database, before, after, milliseconds) =>
      log.info({ database, before, after, milliseconds }, "database compacted"),
    hung: (database, milliseconds) => {
      restarts.add(database);
      log.error({ database, milliseconds }, "database hung, reopening it");
    },
    failed: (database, detail, storageFailure) => {
      if (storageFailure !== undefined) {
        storageFailures.add(database, storageFailure);
      }
      log.error({ database, detail }, "database failed");
    },
  };
}

async function listen(server: Server, options: Options): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (failure: NodeJS.ErrnoException) => {
      reject(new Error(listenFailure(failure, options)));
    });
    server.listen({ host: options.host, port: options.port }, resolve);
  });
}

function listenFailure(
  failure: NodeJS.ErrnoException,
  { host, port }: Options,
): string {
  switch (failure.code) {
    case "EADDRINUSE":
      return `port ${port} on ${host} is already in use; stop the program that uses it, or set another port with --port or HEARTH_NOTES_PORT`;
    case "EACCES":
      return `port ${port} requires more rights; set a port above 1023 with --port`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `this machine has no address ${host}; set another one with --host`;
    default:
      return `cannot listen on ${host}:${port}: ${failure.message}`;
  }
}

async function stop(
  server: Server,
  databases: Databases,
  directory: DataDirectory,
  stopping: AbortController,
  log: Log,
): Promise<void> {
  // Requests that still hang by then were not acknowledged.
  setTimeout(() => process.exit(1), FORCED_STOP_MS).unref();
  const cut = setTimeout(() => server.closeAllConnections(), STOP_MS);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  stopping.abort();
  server.closeIdleConnections();
  const closeIdle = setInterval(() => server.closeIdleConnections(), 100);
  await closed;
  clearTimeout(cut);
  clearInterval(closeIdle);
  await databases.close();
  directory.release();
  log.info("notes store stopped");
  log.flush(() => process.exit(0));
}
