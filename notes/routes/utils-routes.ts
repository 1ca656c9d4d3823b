import { readFileSync } from "node:fs";
import { fitTables } from "../../core/table-cells.ts";
import { requireServerAdmin } from "../auth/permissions.ts";
import { sendText, type Exchange } from "../http/exchange.ts";
import { receiveBody } from "../http/request-body.ts";
import {
  overviewPage,
  type DatabaseRow,
  type Overview,
} from "../pages/overview.ts";
import { Refusal, refusalOf } from "../refusal.ts";
import { bodyBytes } from "../store/query.ts";
import { requireCurrent } from "./access.ts";
import type { ServerContext } from "./context.ts";

const stylesheet = new URL("../../core/hearth.css", import.meta.url);
const MAX_FORM_BYTES = 10_000;

/** Answers `/_utils`: the administration page and its form. */
export async function answerUtils(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  requireServerAdmin(exchange.user);
  const address = exchange.target.segments.slice(1).join("/");
  const { method, response } = exchange;
  if (address === "" && (method === "GET" || method === "HEAD")) {
    const overview = await readOverview(context, exchange.gone);
    sendText(
      response,
      200,
      fitTables(overviewPage(overview, readFileSync(stylesheet, "utf8"))),
      {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy":
          "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
      },
    );
    return;
  }
  if (address === "index.html" && (method === "GET" || method === "HEAD")) {
    response.writeHead(301, { location: "/_utils/" }).end();
    return;
  }
  if (address === "compact" && method === "POST") {
    refuseForeignForm(exchange);
    await compact(context, exchange);
    response.writeHead(303, { location: "/_utils" }).end();
    return;
  }
  throw new Refusal("not_found", "missing");
}

async function readOverview(
  context: ServerContext,
  signal: AbortSignal,
): Promise<Overview> {
  const rows: DatabaseRow[] = [];
  const unreadable: { name: string; reason: string }[] = [];
  for (const name of context.databases.names()) {
    try {
      const database = await context.databases.open(name);
      const answer = await database.call(
        { operation: "overview", query: {}, maxDocumentSize: 0 },
        signal,
      );
      rows.push(JSON.parse(answer.body!) as DatabaseRow);
    } catch (failure) {
      const { code, message } = refusalOf(failure);
      // A database may be deleted meanwhile.
      if (code !== "not_found") {
        unreadable.push({ name, reason: message });
      }
    }
  }
  const failing = context.storageFailures
    .latest()
    .filter(({ database }) => rows.some(({ name }) => name === database));
  return { rows, unreadable, failing };
}

/** Browsers also send the password with forms of other sites. */
function refuseForeignForm({ request }: Exchange): void {
  const { origin, host } = request.headers;
  const site = request.headers["sec-fetch-site"];
  const foreign =
    (site !== undefined && site !== "same-origin") ||
    (origin !== undefined && URL.parse(origin)?.host !== host);
  if (foreign) {
    throw new Refusal("forbidden", "Forms of other sites are rejected.");
  }
}

async function compact(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  const received = await receiveBody(
    exchange.request,
    context.spoolDirectory,
    MAX_FORM_BYTES,
  );
  await requireCurrent(exchange);
  const form = new URLSearchParams(bodyBytes(received.body).toString());
  const database = await context.databases.open(form.get("database") ?? "");
  await database.call(
    { operation: "compact", query: {}, maxDocumentSize: 0 },
    exchange.gone,
  );
}
