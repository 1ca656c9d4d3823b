import type { FastifyInstance, FastifyReply } from "fastify";
import { z } from "zod";
import type { Failure } from "../../core/failure.ts";
import {
  InvalidPeriod,
  type PeriodChoice,
} from "../../supervisor/reports/period.ts";
import { renderReport } from "../../supervisor/reports/render.ts";
import {
  contentTypes,
  REPORT_FORMATS,
  type ReportFormat,
  type ReportKind,
} from "../../supervisor/reports/report.ts";
import type { MakeReport } from "../../supervisor/reports/reporting.ts";
import { sendError, sendMistakes, sendResult } from "./send-error.ts";

export interface ReportParts {
  readonly makeReport: MakeReport;
}

/** A report is a page without script and with inline style. */
export const REPORT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const querySchema = z.strictObject({
  format: z
    .enum(REPORT_FORMATS, "must be text, json, csv or html")
    .default("json"),
  period: z
    .enum(["day", "week", "month"], "must be day, week or month")
    .default("month"),
  last: z.enum(["true", "false"]).default("false"),
  since: z.string().max(20).optional(),
});
const kinds = z.enum(["spend", "health"]);
const WITHIN_MS = 120_000;

/** GET /api/reports/:kind creates a report. */
export function registerReportRoutes(
  server: FastifyInstance,
  parts: ReportParts,
): void {
  server.get<{ Params: { kind: string } }>(
    "/api/reports/:kind",
    async (request, reply) => {
      const kind = kinds.safeParse(request.params.kind);
      const query = querySchema.safeParse(request.query);
      if (!kind.success) {
        return sendError(
          reply,
          404,
          "report not found; available: spend, health.",
        );
      }
      if (!query.success) {
        return sendMistakes(reply, query.error);
      }
      const { format, period: unit, last, since } = query.data;
      return sendResult(reply, statusOfReportFailure, () =>
        reportText(
          reply,
          parts,
          kind.data,
          { unit, complete: last === "true", since },
          format,
        ),
      );
    },
  );
}

/** The HTTP status of a Failure to create a report. */
export function statusOfReportFailure(failure: Failure): 400 | 502 {
  return failure instanceof InvalidPeriod ? 400 : 502;
}

/** Creates a report and sets the headers of its answer. Throws a Failure as `makeReport` does. */
export async function reportText(
  reply: FastifyReply,
  { makeReport }: ReportParts,
  kind: ReportKind,
  choice: PeriodChoice,
  format: ReportFormat,
): Promise<string> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  const report = await makeReport(kind, choice, Date.now(), signal);
  const text = renderReport(report, format);
  reply
    .header("content-security-policy", REPORT_POLICY)
    .type(contentTypes[format]);
  return text;
}
