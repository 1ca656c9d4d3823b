import { createReadStream } from "node:fs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { offsetIn, readFields } from "../../http/forms.ts";
import { sendError } from "../../http/send-error.ts";
import {
  REPORT_POLICY,
  reportText,
  statusOfReportFailure,
  type ReportParts,
} from "../../http/report-routes.ts";
import {
  showingFailures,
  showFailure,
  showPage,
  type Page,
} from "../../http/show-page.ts";
import { wantsPage } from "../../http/sign-in-routes.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import {
  findReport,
  listReports,
} from "../../../supervisor/reports/report-files.ts";
import type { PeriodChoice } from "../../../supervisor/reports/period.ts";
import {
  contentTypes,
  REPORT_FORMATS,
} from "../../../supervisor/reports/report.ts";
import { withTyped, type Field } from "../field.ts";
import { REPORT_FORM, REPORT_JOB_NAMES, viewReports } from "./reports-view.ts";

const PATH = "/reports/";

const reportQuery = z
  .object({
    kind: z.enum(["spend", "health"], "must be spend or health"),
    period: z.enum(
      ["month", "last-month", "week", "last-week", "day", "last-day", "since"],
      "must be one of the choices",
    ),
    since: z.iso.date("must be a date such as 2026-11-01").optional(),
    format: z
      .enum(REPORT_FORMATS, "must be one of the choices")
      .default("html"),
  })
  .refine(({ period, since }) => period !== "since" || since !== undefined, {
    path: ["since"],
    message: "date is required",
  });

interface ReportsPageParts extends ReportParts {
  readonly directory: string;
  readonly timeZone: string;
  readonly jobs: JobRunner;
}

/** GET /reports/ lists the reports, /reports/:file sends one, /reports/now creates one. */
export function registerReportsPage(
  server: FastifyInstance,
  parts: ReportsPageParts,
): void {
  server.get("/reports", (_request, reply) => reply.redirect(PATH));
  server.get<{ Querystring: { from?: string } }>(PATH, (request, reply) =>
    showReports(request, reply, parts, { from: offsetIn(request.query.from) }),
  );
  server.get(`${PATH}now`, (request, reply) =>
    createNow(request, reply, parts),
  );
  server.get<FileRequest>(`${PATH}:file`, (request, reply) =>
    sendStored(request, reply, parts.directory),
  );
}

interface FileRequest {
  readonly Params: { readonly file: string };
}

function showReports(
  request: FastifyRequest,
  reply: FastifyReply,
  { directory, timeZone, jobs }: ReportsPageParts,
  {
    fields = REPORT_FORM,
    from = 0,
    failure,
  }: {
    readonly fields?: readonly Field[];
    readonly from?: number;
    /** Instead of the heading about the listed reports. */
    readonly failure?: Pick<Page, "title" | "look" | "status">;
  },
): Promise<FastifyReply> {
  const listed = viewReports({
    reports: listReports(directory),
    from,
    fields,
    timeZone,
    jobs: jobs
      .list()
      .filter(({ name }) => REPORT_JOB_NAMES.some((each) => each === name)),
    now: Date.now(),
  });
  const { title, look, status } = failure ?? { ...listed, status: 200 };
  return showPage(
    request,
    reply,
    { title, look, current: PATH, status },
    "reports",
    { ...listed, title, look },
  );
}

async function createNow(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: ReportsPageParts,
): Promise<FastifyReply> {
  const form = readFields(request.query, reportQuery);
  if (form.kind === "mistakes") {
    return showReports(request, reply, parts, {
      fields: withTyped(REPORT_FORM, form.typed, form.mistakes),
      failure: { title: "No report was created.", look: "warn", status: 400 },
    });
  }
  const { kind, format } = form.value;
  return showingFailures(
    request,
    reply,
    { statusOf: statusOfReportFailure, back: PATH },
    async () =>
      reply.send(
        await reportText(reply, parts, kind, choiceOf(form.value), format),
      ),
  );
}

function sendStored(
  request: FastifyRequest<FileRequest>,
  reply: FastifyReply,
  directory: string,
): FastifyReply | Promise<FastifyReply> {
  const { file } = request.params;
  const found = findReport(directory, file);
  if (found !== undefined) {
    return reply
      .header("content-security-policy", REPORT_POLICY)
      .type(contentTypes[found.format])
      .send(createReadStream(found.path));
  }
  return wantsPage(request)
    ? showFailure(request, reply, 404, [`Report "${file}" not found.`], PATH)
    : sendError(reply, 404, "report not found.");
}

function choiceOf({
  period,
  since,
}: z.output<typeof reportQuery>): PeriodChoice {
  switch (period) {
    case "month":
    case "week":
    case "day":
      return { unit: period, complete: false };
    case "last-month":
      return { unit: "month", complete: true };
    case "last-week":
      return { unit: "week", complete: true };
    case "last-day":
      return { unit: "day", complete: true };
    case "since":
      return { unit: "day", complete: false, since };
  }
}
