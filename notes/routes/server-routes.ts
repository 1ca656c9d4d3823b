import { randomBytes } from "node:crypto";
import { requireServerAdmin } from "../auth/permissions.ts";
import { entryOf } from "../dictionary.ts";
import { checkName, USERS } from "../databases.ts";
import { sendJson, withAddress, type Exchange } from "../http/exchange.ts";
import { Refusal, refusalOf } from "../refusal.ts";
import { idInUrl } from "../store/document-ids.ts";
import { readJsonBody } from "./json-body.ts";
import type { ServerContext } from "./context.ts";
import { databaseInfo } from "./database-info.ts";
import { databaseUpdates } from "./database-updates-route.ts";

type Handler = (context: ServerContext, exchange: Exchange) => Promise<void>;

/** The version whose API this server implements; clients check it for supported features. */
export const COUCHDB_VERSION = "3.5.0";

const routes: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  "": { GET: welcome },
  _active_tasks: { GET: activeTasks },
  _all_dbs: { GET: allDatabases },
  _cluster_setup: { GET: clusterSetup, POST: clusterSetup },
  _db_updates: { GET: databaseUpdates },
  _dbs_info: { GET: databasesInfo, POST: databasesInfo },
  _membership: { GET: noCluster },
  _replicate: { POST: noReplicator },
  "_scheduler/docs": { GET: noReplicator },
  "_scheduler/jobs": { GET: noReplicator },
  _session: { GET: session, POST: session, DELETE: session },
  _up: { GET: up },
  _uuids: { GET: uuids },
};

export const NODE = "hearth@127.0.0.1";

/** Answers a request to the server itself; false for other paths. */
export async function answerServer(
  context: ServerContext,
  exchange: Exchange,
): Promise<boolean> {
  const methods = entryOf(routes, exchange.target.segments.join("/"));
  if (methods === undefined) {
    return false;
  }
  const method = exchange.method === "HEAD" ? "GET" : exchange.method;
  const handler = entryOf(methods, method);
  if (handler === undefined) {
    const names = Object.keys(methods).flatMap((name) =>
      name === "GET" && methods !== routes._uuids ? ["GET", "HEAD"] : [name],
    );
    throw new Refusal("method_not_allowed", `Only ${names.join(",")} allowed`, {
      allow: names.join(","),
    });
  }
  await handler(context, exchange);
  return true;
}

/** Answers `/_up`. */
export async function up(
  context: ServerContext,
  exchange: Pick<Exchange, "response">,
): Promise<void> {
  const hung = context.databases.hung().length;
  sendJson(exchange.response, 200, {
    status: "ok",
    seeds: {},
    ...(hung > 0 ? { hung_databases: hung } : {}),
  });
}

async function welcome(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  sendJson(exchange.response, 200, {
    couchdb: "Welcome",
    version: COUCHDB_VERSION,
    uuid: context.settings.uuid,
    features: [],
    vendor: { name: "Hearth notes" },
  });
}

async function allDatabases(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  sendJson(exchange.response, 200, namesIn(context, exchange));
}

function namesIn(context: ServerContext, exchange: Exchange): string[] {
  const { query } = exchange.target;
  const key = (...names: string[]): string | undefined => {
    const text = names
      .map((name) => query[name])
      .find((each) => each !== undefined);
    return text?.replace(/^"|"$/g, "");
  };
  const number = (name: string, otherwise: number): number =>
    /^\d+$/.test(query[name] ?? "") ? Number(query[name]) : otherwise;
  const descending = query.descending === "true";
  const start = key("startkey", "start_key");
  const end = key("endkey", "end_key");
  const [low, high] = descending ? [end, start] : [start, end];
  const names = context.databases
    .names()
    .filter(
      (name) =>
        (low === undefined || name >= low) &&
        (high === undefined || name <= high),
    );
  const skip = number("skip", 0);
  return (descending ? names.reverse() : names).slice(
    skip,
    skip + number("limit", Infinity),
  );
}

async function databasesInfo(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  let names = namesIn(context, exchange);
  if (exchange.method === "POST") {
    const { keys } = ((await readJsonBody(context, exchange)) ?? {}) as {
      keys?: unknown;
    };
    if (!Array.isArray(keys)) {
      throw new Refusal("bad_request", "`keys` member must exist.");
    }
    names = keys.map(String);
  }
  const found: unknown[] = [];
  for (const key of names) {
    try {
      const info = await databaseInfo(context, key, exchange.gone);
      found.push(
        info === undefined ? { key, error: "not_found" } : { key, info },
      );
    } catch (failure) {
      // One that cannot be read does not hide the others.
      found.push({ key, error: refusalOf(failure).code });
    }
  }
  sendJson(exchange.response, 200, found);
}

async function activeTasks(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  const tasks: unknown[] = [];
  // A database that is being compacted stays open.
  for (const database of context.databases.opened()) {
    if (!database.state().compacting) {
      continue;
    }
    tasks.push({
      type: "database_compaction",
      database: database.name,
      node: NODE,
    });
  }
  sendJson(exchange.response, 200, tasks);
}

async function session(
  _context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  sendJson(exchange.response, 200, {
    ok: true,
    userCtx: { name: exchange.user.name, roles: exchange.user.roles },
    info: {
      authentication_handlers: ["cookie", "default"],
      authenticated: exchange.login.by,
    },
  });
}

/** As a CouchDB that was set up as a single node, so that scripts for new servers continue. */
async function clusterSetup(
  _context: ServerContext,
  { user, method, response }: Exchange,
): Promise<void> {
  requireServerAdmin(user);
  if (method === "POST") {
    throw new Refusal("bad_request", "Cluster is already finished");
  }
  sendJson(response, 200, { state: "single_node_enabled" });
}

async function noCluster(): Promise<void> {
  throw new Refusal(
    "not_implemented",
    "Clusters are not supported: this notes store is a single server.",
  );
}

async function noReplicator(): Promise<void> {
  throw new Refusal(
    "not_implemented",
    "Replication by the server is not supported; replicate from the client.",
  );
}

async function uuids(
  _context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  const MAX = 1000;
  const text = exchange.target.query.count ?? "1";
  if (!/^\d+$/.test(text)) {
    throw new Refusal("bad_request", "count must be a positive integer");
  }
  if (Number(text) > MAX) {
    throw new Refusal("bad_request", "count parameter too large");
  }
  const fresh = Array.from({ length: Number(text) }, () =>
    randomBytes(16).toString("hex"),
  );
  sendJson(
    exchange.response,
    200,
    { uuids: fresh },
    {
      "cache-control": "no-cache",
      etag: `"${randomBytes(12).toString("hex")}"`,
      expires: "Mon, 01 Jan 1990 00:00:00 GMT",
      pragma: "no-cache",
    },
  );
}

const REPLICATOR = "_replicator";
const GLOBAL_CHANGES = "_global_changes";

function noSuchFeature(database: string): Refusal {
  return new Refusal(
    "not_implemented",
    `Database ${database} is not supported: the server neither replicates nor records global changes.`,
  );
}

export async function createDatabase(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  const [name = ""] = exchange.target.segments;
  if (name === REPLICATOR || name === GLOBAL_CHANGES) {
    throw noSuchFeature(name);
  }
  checkName(name);
  for (const parameter of ["q", "n"]) {
    const value = exchange.target.query[parameter];
    if (value !== undefined && !/^[1-9]\d*$/.test(value)) {
      throw new Refusal(
        "bad_request",
        `The \`${parameter}\` value should be a positive integer.`,
      );
    }
  }
  await context.databases.create(name);
  context.log.info(
    { database: name, by: exchange.user.name },
    "database created",
  );
  sendJson(
    exchange.response,
    201,
    { ok: true },
    withAddress(exchange.request, { location: `/${idInUrl(name)}` }),
  );
}

/** Deletes a database with its contents. */
export async function removeDatabase(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  const [name = ""] = exchange.target.segments;
  if (exchange.target.query.rev !== undefined) {
    throw new Refusal(
      "bad_request",
      "You tried to DELETE a database with a ?=rev parameter. Did you mean to DELETE a document instead?",
    );
  }
  requireServerAdmin(exchange.user);
  if (name === USERS) {
    throw new Refusal(
      "forbidden",
      "The database _users contains all users and cannot be deleted. Delete single users instead.",
    );
  }
  if (name === REPLICATOR || name === GLOBAL_CHANGES) {
    throw noSuchFeature(name);
  }
  await context.databases.remove(name);
  context.restarts.forget(name);
  context.storageFailures.forget(name);
  context.log.warn(
    { database: name, by: exchange.user.name },
    "database deleted",
  );
  sendJson(exchange.response, 200, { ok: true });
}
