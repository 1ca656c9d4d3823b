import type { ServerResponse } from "node:http";
import type { DatabaseUpdate } from "../database-updates.ts";
import { requireServerAdmin } from "../auth/permissions.ts";
import { openWait, readKind, readPatience } from "../feed-wait.ts";
import { sendJson, type Exchange } from "../http/exchange.ts";
import { requireCurrent } from "./access.ts";
import type { ServerContext } from "./context.ts";

/** Answers `_db_updates`, the databases created, changed and deleted: once, or for as long as the client listens. */
export async function databaseUpdates(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  const ended = new AbortController();
  const stopWatching = exchange.login.onEnd(() => ended.abort());
  try {
    // The login may have ended before it was watched, while the password was checked.
    await requireCurrent(exchange);
    await answerUpdates(context, exchange, ended.signal);
  } finally {
    stopWatching();
  }
}

/** `ended` is aborted when the login ends. */
async function answerUpdates(
  { databases: { updates }, stopping }: ServerContext,
  exchange: Exchange,
  ended: AbortSignal,
): Promise<void> {
  const { request, response, target, gone } = exchange;
  const kind = readKind(target.query.feed);
  const patience = readPatience(target.query);
  let seq = updates.seqOf(target.query.since);
  let rows = updates.after(seq);
  seq = updates.seq();
  const last = (): object => ({ results: rows, last_seq: updates.token(seq) });
  if (
    kind === "normal" ||
    request.method === "HEAD" ||
    (kind === "longpoll" && rows.length > 0)
  ) {
    sendJson(response, 200, last());
    return;
  }
  const wait = openWait(
    updates,
    patience,
    exchange,
    AbortSignal.any([gone, stopping, ended]),
  );
  response.writeHead(200, { "content-type": "application/json" });
  if (kind === "longpoll") {
    response.flushHeaders();
  } else if (rows.length > 0) {
    writeRows(response, rows);
  } else {
    response.write("\n");
  }
  try {
    while (await wait.forChangeAfter(seq)) {
      rows = updates.after(seq);
      seq = updates.seq();
      if (kind === "longpoll") {
        break;
      }
      writeRows(response, rows);
      wait.restart();
    }
  } finally {
    wait.close();
  }
  if (response.destroyed) {
    return;
  }
  response.end(
    `${JSON.stringify(kind === "longpoll" ? last() : { last_seq: updates.token(seq) })}\n`,
  );
}

function writeRows(
  response: ServerResponse,
  rows: readonly DatabaseUpdate[],
): void {
  for (const row of rows) {
    response.write(`${JSON.stringify(row)}\n`);
  }
}
