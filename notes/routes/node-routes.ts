import { challenge } from "../auth/authenticate.ts";
import { isServerAdmin, requireServerAdmin } from "../auth/permissions.ts";
import { sendJson, type Exchange } from "../http/exchange.ts";
import { Refusal } from "../refusal.ts";
import { readJsonBody } from "./json-body.ts";
import type { ServerContext } from "./context.ts";
import { NODE } from "./server-routes.ts";

/** The last is that of CouchDB's image, which scripts for new servers use. */
const NODE_NAMES = ["_local", NODE, "nonode@nohost"];

/** Answers `/_node/…`: the node's name and its settings. */
export async function answerNode(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  const [, node, topic, section, key, ...more] = exchange.target.segments;
  requireReader(exchange, topic);
  if (node === undefined || !NODE_NAMES.includes(node)) {
    throw new Refusal("not_found", `no such node: ${node ?? ""}`);
  }
  switch (topic) {
    case undefined:
      sendJson(exchange.response, 200, { name: NODE });
      return;
    case "_config":
      if (more.length > 0) {
        throw new Refusal("not_found", "missing");
      }
      await answerConfig(context, exchange, section, key);
      return;
    case "_system":
      sendJson(exchange.response, 200, {
        uptime: Math.floor(process.uptime()),
        memory: process.memoryUsage(),
        // CPU times in microseconds, maxRSS in kilobytes.
        resources: process.resourceUsage(),
        open_databases: context.databases.opened().map(({ name }) => name),
        ...troubledDatabases(context),
      });
      return;
    default:
      throw new Refusal(
        "not_implemented",
        "Only _config and _system of the node are supported.",
      );
  }
}

/** Vaults that do not respond, were reopened because of that, or could not be read or written; omitted while there are none. */
function troubledDatabases({
  databases,
  restarts,
  storageFailures,
}: ServerContext): Record<string, unknown> {
  const hung = databases.hung();
  const reopened = restarts.latest();
  const failing = storageFailures.latest();
  return {
    ...(hung.length === 0 && reopened.length === 0
      ? {}
      : { hung_databases: hung, reopened_databases: reopened }),
    ...(failing.length === 0 ? {} : { failing_databases: failing }),
  };
}

function requireReader(exchange: Exchange, topic: string | undefined): void {
  const metrics = ["_system", "_stats", "_prometheus"];
  if (
    topic !== undefined &&
    metrics.includes(topic) &&
    !isServerAdmin(exchange.user)
  ) {
    throw new Refusal(
      "unauthorized",
      "You are not a server admin or read-only metrics user",
      challenge,
    );
  }
  requireServerAdmin(exchange.user);
}

async function answerConfig(
  context: ServerContext,
  exchange: Exchange,
  section: string | undefined,
  key: string | undefined,
): Promise<void> {
  const { settings, log } = context;
  const { method, response } = exchange;
  if (method === "GET" || method === "HEAD") {
    const sections = settings.sections();
    if (section === undefined) {
      sendJson(response, 200, sections);
    } else if (key === undefined) {
      sendJson(response, 200, sections[section] ?? {});
    } else {
      sendJson(response, 200, known(settings.get(section, key)));
    }
    return;
  }
  if (
    section === undefined ||
    key === undefined ||
    !["PUT", "DELETE"].includes(method)
  ) {
    const names = key === undefined ? "GET" : "GET,PUT,DELETE";
    throw new Refusal("method_not_allowed", `Only ${names} allowed`, {
      allow: names,
    });
  }
  const before = settings.get(section, key);
  if (method === "DELETE") {
    known(before);
    if (section === "admins" && Object.keys(settings.admins()).length === 1) {
      throw new Refusal(
        "forbidden",
        "This is the last server admin; create another one first.",
      );
    }
    await settings.set(section, key, undefined);
  } else {
    const value = await readJsonBody(context, exchange);
    if (typeof value !== "string") {
      throw new Refusal("bad_request", "a JSON string expected");
    }
    if (/[\r\n]/.test(value)) {
      throw new Refusal("bad_request", "The value must be a single line.");
    }
    await settings.set(section, key, value);
  }
  log.info({ section, key, by: exchange.user.name }, "setting changed");
  sendJson(response, 200, before ?? "");
}

function known(value: string | undefined): string {
  if (value === undefined) {
    throw new Refusal("not_found", "unknown_config_value");
  }
  return value;
}
