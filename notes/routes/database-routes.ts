import {
  isDatabaseAdmin,
  isServerAdmin,
  requireRight,
} from "../auth/permissions.ts";
import { USERS } from "../databases.ts";
import { sendAnswer, type DatabaseExchange } from "../http/exchange.ts";
import { receiveBody, type ReceivedBody } from "../http/request-body.ts";
import { noAttachments, Refusal } from "../refusal.ts";
import type { OperationName, StoreRequest } from "../store/protocol.ts";
import type { Settings } from "../settings.ts";
import type { ServerContext } from "./context.ts";
import { whileAllowed } from "./access.ts";
import { findRoute, type Route } from "./database-table.ts";

/** Answers a request to a path below a database. */
export async function answerDatabase(
  context: ServerContext,
  exchange: DatabaseExchange,
): Promise<void> {
  const [, ...rest] = exchange.target.segments;
  const { route, id } = findRoute(rest, exchange);
  await whileAllowed(
    exchange,
    () => authorize(exchange, route, rest[0] ?? ""),
    async (allowed) => await answerRoute(context, allowed, route, id),
  );
}

async function answerRoute(
  context: ServerContext,
  exchange: DatabaseExchange,
  route: Route,
  id: string | undefined,
): Promise<void> {
  if (route.body === "json") {
    requireJson(exchange);
  }
  // A replicator sends documents with attachments in parts.
  if (DOCUMENT_WRITES.has(route.does) && isMultipart(exchange)) {
    throw noAttachments();
  }
  const received =
    route.body === undefined
      ? undefined
      : await receiveBody(
          exchange.request,
          context.spoolDirectory,
          maxBodyBytes(context.settings, route),
        ).catch((failure: unknown) => {
          throw namingDocument(failure, context.settings, route, id);
        });
  try {
    exchange.response.setHeader(
      "x-couchdb-body-time",
      received?.milliseconds ?? 0,
    );
    if (typeof route.does === "function") {
      await route.does(context, exchange, received);
      return;
    }
    const request = storeRequest(context, exchange, route.does, id, received);
    await sendAnswer(
      exchange,
      await exchange.database.call(request, exchange.gone),
    );
  } finally {
    await received?.discard();
  }
}

/** Only `_bulk_docs` is read in pieces; any other body is in memory as a whole. */
function maxBodyBytes(settings: Settings, { does }: Route): number {
  const limit = settings.maxRequestSize();
  if (does === "bulkDocs") {
    return limit;
  }
  if (does === "collect") {
    return Math.min(limit, MAX_CHUNK_LIST_BYTES);
  }
  return Math.min(
    limit,
    DOCUMENT_WRITES.has(does)
      ? settings.maxDocumentSize() * 1.25 + BODY_SLACK_BYTES
      : MAX_QUERY_BYTES,
  );
}

const DOCUMENT_WRITES: ReadonlySet<Route["does"]> = new Set([
  "postDocument",
  "putDocument",
  "putLocal",
]);

/** Lists of ids, revisions or keys, and selectors: some 100,000 ids. */
const MAX_QUERY_BYTES = 8_000_000;
/** All unused chunks of a vault, some millions of ids: only an admin sends it. */
const MAX_CHUNK_LIST_BYTES = 64_000_000;
/** White space and special members, which are not part of a document's size. */
const BODY_SLACK_BYTES = 1_048_576;

function namingDocument(
  failure: unknown,
  settings: Settings,
  route: Route,
  id: string | undefined,
): unknown {
  const isLongDocument =
    failure instanceof Refusal &&
    failure.code === "too_large" &&
    DOCUMENT_WRITES.has(route.does) &&
    maxBodyBytes(settings, route) < settings.maxRequestSize();
  return isLongDocument ? new Refusal("document_too_large", id ?? "") : failure;
}

function storeRequest(
  context: ServerContext,
  exchange: DatabaseExchange,
  operation: OperationName,
  id: string | undefined,
  received: ReceivedBody | undefined,
): StoreRequest {
  const { headers } = exchange.request;
  return {
    operation,
    query: exchange.target.query,
    ...(id === undefined ? {} : { id }),
    ...(received === undefined ? {} : { body: received.body }),
    ...(headers["if-match"] === undefined
      ? {}
      : { ifMatch: headers["if-match"] }),
    ...(headers["if-none-match"] === undefined
      ? {}
      : { ifNoneMatch: headers["if-none-match"] }),
    accept: (headers.accept ?? "")
      .split(",")
      .map((range) => range.split(";")[0]!.trim().toLowerCase()),
    admin: isDatabaseAdmin(exchange.user, exchange.database.state().security),
    maxDocumentSize: context.settings.maxDocumentSize(),
  };
}

function authorize(
  exchange: DatabaseExchange,
  route: Route,
  first: string,
): void {
  const { user, database } = exchange;
  const state = database.state();
  const feedOfUsers =
    database.name === USERS && (first === "_all_docs" || first === "_changes");
  // A user without read access gets the error of a member, a reader who is not an admin that of an admin.
  const changesSettings = first === "_security" || first === "_revs_limit";
  if (changesSettings && route.right === "databaseAdmin") {
    requireRight(user, database.name, state.security, "member");
    if (!isDatabaseAdmin(user, state.security)) {
      throw new Refusal("forbidden", "You are not a db or server admin.");
    }
    return;
  }
  requireRight(
    user,
    database.name,
    state.security,
    feedOfUsers && !isServerAdmin(user) ? "serverAdmin" : route.right,
  );
}

function isMultipart({ request }: DatabaseExchange): boolean {
  return /^multipart\//i.test(request.headers["content-type"] ?? "");
}

function requireJson(exchange: DatabaseExchange): void {
  const type = exchange.request.headers["content-type"] ?? "";
  if (/^application\/json\b/i.test(type)) {
    return;
  }
  throw new Refusal(
    "bad_content_type",
    "Content-Type must be application/json",
  );
}
