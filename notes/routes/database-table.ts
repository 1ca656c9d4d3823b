import { entryOf } from "../dictionary.ts";
import type { Right } from "../auth/permissions.ts";
import { answerChanges } from "../feeds.ts";
import { sendJson, type DatabaseExchange } from "../http/exchange.ts";
import type { ReceivedBody } from "../http/request-body.ts";
import { noAttachments, Refusal } from "../refusal.ts";
import type { OperationName } from "../store/protocol.ts";
import type { ServerContext } from "./context.ts";

/** The route of one method. */
export interface Route {
  readonly right: Right;
  /** An operation of the database's worker, or a handler on the main thread. */
  readonly does: OperationName | Handler;
  readonly body?: "none" | "json" | "any";
}

type Handler = (
  context: ServerContext,
  exchange: DatabaseExchange,
  received: ReceivedBody | undefined,
) => Promise<void>;

type Methods = Readonly<Record<string, Route>>;

const member = (does: Route["does"], body?: Route["body"]): Route => ({
  right: "member",
  does,
  ...(body === undefined ? {} : { body }),
});

const changesFeed: Handler = async (context, exchange, received) =>
  await answerChanges(
    exchange,
    received !== undefined && hasBytes(received) ? received.body : undefined,
    context.stopping,
    context.settings.maxDocumentSize(),
  );

const security: Handler = async (_context, exchange) =>
  sendJson(exchange.response, 200, exchange.database.state().security);

const ensureFullCommit: Handler = async (_context, exchange) =>
  // Every write is on disk before its response.
  sendJson(exchange.response, 201, {
    ok: true,
    instance_start_time: exchange.database.state().instanceStartTime,
  });

const viewCleanup: Handler = async (_context, exchange) =>
  sendJson(exchange.response, 202, { ok: true });

const noDesignDocs: Handler = async (_context, exchange) =>
  sendJson(exchange.response, 200, { total_rows: 0, offset: 0, rows: [] });

const indexes: Handler = async (_context, exchange) =>
  sendJson(exchange.response, 200, {
    total_rows: 1,
    indexes: [
      {
        ddoc: null,
        name: "_all_docs",
        type: "special",
        def: { fields: [{ _id: "asc" }] },
      },
    ],
  });

const lacking =
  (sentence: string): Handler =>
  async () => {
    throw new Refusal("not_implemented", sentence);
  };

const noViews = lacking(
  "Design documents, views and indexes are not supported; use _all_docs, _changes or _find.",
);
const noQueries = lacking("Multiple queries are not supported; use _all_docs.");
const noMissingRevs = lacking(
  "_missing_revs is not supported; use _revs_diff.",
);
const noCopy = lacking(
  "COPY is not supported; read the document and write it under another id.",
);
const noPurge = lacking(
  "_purge is not supported; delete the document and compact the database.",
);

/** Paths below a database, with their methods in CouchDB's order. */
const routes: Readonly<Record<string, Methods>> = {
  "": {
    GET: member("info"),
    POST: member("postDocument", "json"),
  },
  _all_docs: {
    GET: member("allDocs"),
    POST: member("allDocs", "json"),
  },
  "_all_docs/queries": { POST: member(noQueries) },
  _bulk_docs: { POST: member("bulkDocs", "json") },
  _bulk_get: { POST: member("bulkGet", "json") },
  _changes: {
    GET: member(changesFeed),
    POST: member(changesFeed, "json"),
  },
  _collect: {
    POST: { right: "databaseAdmin", does: "collect", body: "json" },
  },
  _compact: {
    POST: { right: "databaseAdmin", does: "compact", body: "json" },
  },
  _design_docs: { GET: member(noDesignDocs) },
  _ensure_full_commit: { POST: member(ensureFullCommit, "json") },
  _explain: { POST: member(noViews, "json") },
  _find: { POST: member("find", "json") },
  _history: { GET: member("history"), POST: member("history", "json") },
  _index: { GET: member(indexes), POST: member(noViews, "json") },
  _local_docs: {
    GET: member("localDocs"),
    POST: member("localDocs", "json"),
  },
  _missing_revs: { POST: member(noMissingRevs) },
  _purge: { POST: { right: "serverAdmin", does: noPurge, body: "json" } },
  _revs_diff: { POST: member("revsDiff", "json") },
  _revs_limit: {
    PUT: { right: "databaseAdmin", does: "putRevsLimit", body: "any" },
    GET: member("revsLimit"),
  },
  _security: {
    PUT: { right: "databaseAdmin", does: "putSecurity", body: "any" },
    GET: member(security),
  },
  _space: { GET: member("space") },
  _temp_view: {
    POST: member(async () => {
      throw new Refusal("gone", "Temporary views are not supported in CouchDB");
    }, "json"),
  },
  _view_cleanup: {
    POST: { right: "databaseAdmin", does: viewCleanup, body: "json" },
  },
};

const documentMethods: Methods = {
  DELETE: member("deleteDocument"),
  GET: member("getDocument"),
  POST: member(async () => {
    throw new Refusal("bad_request", "Referer header required.");
  }),
  PUT: member("putDocument", "any"),
  COPY: member(noCopy),
};

const localMethods: Methods = {
  DELETE: member("deleteLocal"),
  GET: member("getLocal"),
  PUT: member("putLocal", "any"),
};

/** The methods of a 405 response, in CouchDB's order. */
const allowed: Readonly<Record<string, string>> = {
  "": "DELETE,GET,HEAD,POST",
  _all_docs: "GET,HEAD,POST",
  _changes: "GET,POST,HEAD",
  _security: "PUT,GET",
  _revs_limit: "PUT,GET",
  document: "DELETE,GET,HEAD,POST,PUT,COPY",
};

/** Resolves the segments below a database to a route and the document they name. Throws 404, 405, or 400 for an invalid path. */
export function findRoute(
  rest: readonly string[],
  exchange: DatabaseExchange,
): { route: Route; id?: string } {
  const address = rest.join("/");
  const [first = "", ...more] = rest;
  const method = exchange.method === "HEAD" ? "GET" : exchange.method;
  const known = entryOf(routes, address);
  if (known !== undefined) {
    return { route: methodOf(known, method, entryOf(allowed, address)) };
  }
  const escaped = /^_local\/(.+)$/s.exec(first);
  if (escaped !== null && more.length === 0) {
    return findRoute(["_local", escaped[1]!], exchange);
  }
  if (first === "_local") {
    return { route: localRoute(more, method), id: `_local/${more[0]!}` };
  }
  if (first === "_design") {
    if (more.length > 1) {
      return { route: member(noViews) };
    }
    return {
      route: methodOf(documentMethods, method, allowed.document),
      id: `_design/${more[0] ?? ""}`,
    };
  }
  if (first === "_compact" || first === "_index") {
    return first === "_compact"
      ? { route: { right: "databaseAdmin", does: missing } }
      : { route: member(noViews) };
  }
  if (more.length > 0) {
    return {
      route: member(
        first.startsWith("_")
          ? missing
          : async () => {
              throw noAttachments();
            },
      ),
    };
  }
  // Neither a valid document id nor a known path.
  if (first.startsWith("_") && method === "POST") {
    return { route: member(missing) };
  }
  return {
    route: methodOf(documentMethods, method, allowed.document),
    id: first,
  };
}

const missing: Handler = async () => {
  throw new Refusal("not_found", "missing");
};

function localRoute(more: readonly string[], method: string): Route {
  if (more.length === 0) {
    throw new Refusal("bad_request", "Invalid _local document id.");
  }
  if (more.length > 1) {
    throw new Refusal(
      "bad_request",
      "_local documents do not accept attachments.",
    );
  }
  return methodOf(localMethods, method, allowed.document);
}

function methodOf(
  methods: Methods,
  method: string,
  names: string | undefined,
): Route {
  const route = entryOf(methods, method);
  if (route !== undefined) {
    return route;
  }
  const list = names ?? Object.keys(methods).join(",");
  throw new Refusal("method_not_allowed", `Only ${list} allowed`, {
    allow: list,
  });
}

function hasBytes(received: ReceivedBody): boolean {
  return received.body.kind === "file" || received.body.bytes.length > 0;
}
