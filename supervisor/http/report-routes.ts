import { createReadStream, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { Failure, codeOf } from "../failure.ts";
import { moment } from "../pages/words.ts";
import { renderReport } from "../reports/render.ts";
import {
  contentTypes,
  reportFormats,
  type ReportFormat,
} from "../reports/report.ts";
import type { MakeReport } from "../reports/reporting.ts";
import { refuse } from "./refuse.ts";
import { showPage } from "./show-page.ts";

const asked = z.strictObject({
  format: z
    .enum(reportFormats, "format must be text, json, csv or html")
    .default("json"),
  period: z
    .enum(["day", "week", "month"], "period must be day, week or month")
    .default("month"),
  last: z.enum(["true", "false"]).default("false"),
  since: z.string().max(20).optional(),
});
const kinds = z.enum(["spend", "health"]);
const fileName =
  /^(spend|health)-\d{4}-\d\d-\d\d(-to-\d{4}-\d\d-\d\d)?\.(txt|json|csv|html)$/;
const formatOf: Readonly<Record<string, ReportFormat>> = {
  txt: "text",
  json: "json",
  csv: "csv",
  html: "html",
};
const withinMs = 120_000;

/** A report is a page without script; its style stands in it. */
const reportPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** GET /api/reports/:kind makes one now; GET /reports/ lists those in `directory`, GET /reports/:file shows one. */
export function registerReportRoutes(
  server: FastifyInstance,
  parts: {
    readonly makeReport: MakeReport;
    readonly directory: string;
    readonly timeZone: string;
  },
): void {
  server.get<{ Params: { kind: string } }>(
    "/api/reports/:kind",
    async (request, reply) => {
      const kind = kinds.safeParse(request.params.kind);
      const query = asked.safeParse(request.query);
      if (!kind.success)
        return refuse(reply, 404, "there are the reports spend and health.");
      if (!query.success)
        return refuse(
          reply,
          400,
          query.error.issues.map(({ message }) => `${message}.`).join(" "),
        );
      const { format, period: unit, last, since } = query.data;
      const signal = AbortSignal.timeout(withinMs);
      try {
        const report = await parts.makeReport(
          kind.data,
          { unit, complete: last === "true", since },
          Date.now(),
          signal,
        );
        const text = await renderReport(report, format, signal);
        return reply
          .header("content-security-policy", reportPolicy)
          .type(contentTypes[format])
          .send(text);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return refuse(reply, 502, error.sentences.join(" "));
      }
    },
  );
  server.get("/reports", (_request, reply) => reply.redirect("/reports/"));
  server.get("/reports/", (request, reply) => {
    return showPage(
      request,
      reply,
      { title: "Reports", look: "none", current: "/reports/" },
      "reports",
      { reports: listReports(parts.directory, parts.timeZone) },
    );
  });
  server.get<{ Params: { file: string } }>(
    "/reports/:file",
    (request, reply) => {
      const { file } = request.params;
      const path = join(parts.directory, file);
      const ending = fileName.exec(file)?.[3];
      const format = ending === undefined ? undefined : formatOf[ending];
      if (
        format === undefined ||
        statSync(path, { throwIfNoEntry: false }) === undefined
      )
        return refuse(reply, 404, "there is no such report.");
      return reply
        .header("content-security-policy", reportPolicy)
        .type(contentTypes[format])
        .send(createReadStream(path));
    },
  );
}

type ReportLine = {
  readonly name: string;
  readonly days: string;
  readonly madeAt: string;
  readonly files: readonly string[];
};

/** Newest days first, the four forms of one report on one line. */
function listReports(
  directory: string,
  timeZone: string,
): readonly ReportLine[] {
  let names: readonly string[];
  try {
    names = readdirSync(directory).filter((name) => fileName.test(name));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  const stems = [...new Set(names.map((name) => name.replace(/\.\w+$/, "")))];
  const daysOf = (stem: string) => stem.replace(/^\w+-/, "");
  return stems
    .toSorted((a, b) => (daysOf(a) < daysOf(b) ? 1 : -1))
    .map((stem) => {
      const files = names.filter((name) => name.startsWith(`${stem}.`));
      const [first = ""] = files;
      return {
        name: stem.startsWith("spend") ? "Spend" : "Health",
        days: daysOf(stem).replace("-to-", " to "),
        madeAt: moment(statSync(join(directory, first)).mtimeMs, timeZone),
        files,
      };
    });
}
