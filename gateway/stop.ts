import { setTimeout as sleep } from "node:timers/promises";
import type { ClientConnections } from "../core/client-connections.ts";
import { resolveWithin } from "../core/resolve-within.ts";
import type { Connections } from "./connections.ts";
import type { createServer } from "./http/server.ts";
import type { GatewayParts } from "./parts.ts";

/** Time for the error answers of calls that the drain ended. */
const LAST_ANSWERS_MS = 1_000;
/** Limit of the last flush into the ledger: while the database is unavailable it must not delay the stop; the journal keeps the calls. */
const LAST_FLUSH_MS = 5_000;
const FLUSH_AGAIN_MS = 100;

/** Answers 503 on readiness for `noticeMs`, or for the configured time if that is longer, and continues to serve. */
export async function giveNotice(
  parts: GatewayParts,
  noticeMs: number,
): Promise<void> {
  parts.beginStopping();
  parts.log.info({ running: parts.activeCalls.count() }, "stopping");
  await sleep(Math.max(parts.config.server.drainNoticeMs, noticeMs));
}

/** Stops accepting calls, waits for the running ones, and ends those that take longer than `drain_timeout`. */
export async function drain(
  parts: GatewayParts,
  server: ReturnType<typeof createServer>,
  clients: ClientConnections,
): Promise<void> {
  const { background, sockets, activeCalls, config } = parts;
  const { drainTimeoutMs } = config.server;
  parts.beginStopping();
  const closed = Promise.all([
    sockets.end(),
    server.close(),
    // A server does not count connections that another process has accepted.
    clients.ended(),
    background.ended(),
  ]);
  clients.closeIdle();
  await resolveWithin(closed, drainTimeoutMs);
  activeCalls.abortAll();
  await resolveWithin(closed, LAST_ANSWERS_MS);
  clients.closeAll();
  await closed;
}

/** Brings the journal into the ledger, then stops all parts and closes their connections. */
export async function stopParts(
  parts: GatewayParts,
  connections: Connections,
): Promise<void> {
  const { ledger, refusals, prompts, traces, webhook } = parts;
  const { redis, cacheRedis } = connections;
  await flushLedger(parts);
  await ledger.stop();
  await resolveWithin(
    Promise.all([
      refusals.stop(),
      prompts.stop(),
      webhook?.stop(),
      // What the collector does not accept is counted and logged there.
      traces?.close().catch(() => undefined),
    ]),
    LAST_FLUSH_MS,
  );
  parts.retention.stop();
  parts.partitions.stop();
  parts.activeCalls.stop();
  parts.router.cooldowns.stop();
  await parts.runners.close();
  await parts.limits.close();
  redis?.disconnect();
  cacheRedis?.disconnect();
  await parts.database.stop();
  await parts.providers.close();
  await parts.journal.close();
  const { pool, callPool, sessionPool } = connections;
  const pools = new Set([pool, callPool, sessionPool]);
  await Promise.all([...pools].map((one) => one.end()));
  parts.log.info("stopped");
}

/** Tries again while the database is there: among many instances, a drain may give up waiting for its turn. */
async function flushLedger({ ledger, database }: GatewayParts): Promise<void> {
  let late = false;
  const flushed = async () => {
    while (!late) {
      try {
        return await ledger.flush();
      } catch {
        if (!database.connected()) {
          return;
        }
        await sleep(FLUSH_AGAIN_MS);
      }
    }
  };
  await resolveWithin(flushed(), LAST_FLUSH_MS);
  late = true;
}
