import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../../core/failure.ts";
import { csvOf } from "../../../supervisor/reports/csv.ts";
import { sendError } from "../../http/send-error.ts";
import { showPage } from "../../http/show-page.ts";
import { gatewayHandlers, KEYS_PATH } from "../nouns/noun-context.ts";
import { AUDIT_PATH, readAuditChoice } from "./audit-choice.ts";
import {
  readEntries,
  type AuditContext,
  type AuditEntry,
} from "./audit-reader.ts";
import { csvRows, viewAudit } from "./audit-view.ts";

const ON_PAGE = 50;
/** Of one request to the gateway, which limits the size of its answers. */
const CSV_PART = 250;
const MAX_CSV_ROWS = 10_000;

/** GET /audit: who changed what, newest first; GET /audit.csv: the same, at most 10,000 rows. */
export function registerAuditPage(
  server: FastifyInstance,
  context: AuditContext,
): void {
  const handle = gatewayHandlers(context, {
    title: "The audit log is unavailable.",
    current: KEYS_PATH,
  });
  server.get(AUDIT_PATH, handle(AUDIT_PATH, showAudit));
  server.get(`${AUDIT_PATH}.csv`, (request, reply) =>
    sendCsv(request, reply, context),
  );
}

async function showAudit(
  request: FastifyRequest,
  reply: FastifyReply,
  context: AuditContext,
): Promise<FastifyReply> {
  const choice = readAuditChoice(request.query);
  const entries = await readEntries(context, choice, ON_PAGE + 1);
  const { title, ...view } = viewAudit(
    choice,
    entries,
    ON_PAGE,
    context.timeZone,
    Date.now(),
  );
  return showPage(
    request,
    reply,
    {
      title,
      look: "none",
      current: KEYS_PATH,
      // Later pages do not change.
      refreshes: choice.before === "",
    },
    "audit",
    { ...view, maxRows: MAX_CSV_ROWS },
  );
}

async function sendCsv(
  request: FastifyRequest,
  reply: FastifyReply,
  context: AuditContext,
): Promise<FastifyReply> {
  let choice = readAuditChoice(request.query);
  const all: AuditEntry[] = [];
  try {
    for (;;) {
      const part = await readEntries(context, choice, CSV_PART);
      all.push(...part);
      const last = part.at(-1);
      if (
        last === undefined ||
        part.length < CSV_PART ||
        all.length >= MAX_CSV_ROWS
      ) {
        break;
      }
      choice = { ...choice, before: last.cursor };
    }
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    return sendError(reply, 503, error.sentences.join(" "));
  }
  return reply
    .type("text/csv; charset=utf-8")
    .header("content-disposition", `attachment; filename="audit.csv"`)
    .send(csvOf(csvRows(all)));
}
