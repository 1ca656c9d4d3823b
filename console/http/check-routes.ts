import type { DatabaseSync } from "node:sqlite";
import type { FastifyInstance, FastifyReply } from "fastify";
import { z } from "zod";
import { DAY_MS } from "../../core/duration.ts";
import {
  checkRecords,
  hourBars,
} from "../../supervisor/checks/check-reports.ts";
import { incidents } from "../../supervisor/checks/incidents.ts";
import type { PingKind } from "../../supervisor/checks/kinds/probe.ts";
import type { Watch } from "../../supervisor/checks/watch.ts";
import type { CheckView } from "../../supervisor/checks/watched.ts";
import { duration, name } from "../../supervisor/config/fields.ts";
import { byAuthor, withAuthor } from "../../supervisor/history/author.ts";
import type { History } from "../../supervisor/history/history.ts";
import { notFound } from "../../core/nearest.ts";
import { sendError, sendMistakes } from "./send-error.ts";

const MAX_MAINTENANCE_MS = 30 * DAY_MS;
const MAX_PING_TEXT_LENGTH = 300;

const why = z
  .string("is required")
  .trim()
  .min(3, "must be at least 3 characters")
  .max(500, "must be at most 500 characters");
const maintenanceBody = z.strictObject({
  /** Default: all. */
  checks: z.array(name).min(1, "must name at least one check").optional(),
  for: duration.refine((ms) => ms <= MAX_MAINTENANCE_MS, {
    error: "must be at most 30d",
  }),
  why,
});
const pauseBody = z.strictObject({ why }).optional();

interface Named {
  readonly Params: { readonly name: string };
}

/**
 * GET /api/checks/:name; POST /api/pause/:name, /api/resume/:name; GET, POST /api/maintenance; DELETE /api/maintenance/:idOrChecks;
 * GET, POST /ping/:name, /ping/:name/start, /ping/:name/fail, /ping/:name/<exit code>.
 */
export function registerCheckRoutes(
  server: FastifyInstance,
  watching: () => Watch | undefined,
  history: History,
): void {
  const { db } = history;
  server.get<Named>("/api/checks/:name", (request, reply) =>
    withCheck(reply, watching(), request.params.name, (view) => {
      const now = Date.now();
      return {
        check: view,
        hours: hourBars(db, now).get(view.name) ?? [],
        lastDay: recordOf(db, view.name, now - DAY_MS, now),
        lastMonth: recordOf(db, view.name, now - 30 * DAY_MS, now),
        incidents: incidents(db, now - 30 * DAY_MS, now, [view.name]).slice(
          0,
          50,
        ),
      };
    }),
  );
  server.post<Named>("/api/pause/:name", (request, reply) => {
    const parsed = pauseBody.safeParse(request.body ?? undefined);
    if (!parsed.success) {
      return sendMistakes(reply, parsed.error);
    }
    const reason = parsed.data?.why ?? `paused ${byAuthor()}`;
    return withCheck(reply, watching(), request.params.name, (view, watch) =>
      watch.pause(view.name, reason),
    );
  });
  server.post<Named>("/api/resume/:name", (request, reply) =>
    withCheck(reply, watching(), request.params.name, (view, watch) =>
      watch.resume(view.name),
    ),
  );
  registerMaintenance(server, watching, history);
  registerPings(server, watching);
}

function registerMaintenance(
  server: FastifyInstance,
  watching: () => Watch | undefined,
  history: History,
): void {
  server.get("/api/maintenance", () => ({
    windows: watching()?.maintenance.open(Date.now()) ?? [],
  }));
  server.post("/api/maintenance", (request, reply) => {
    const watch = watching();
    if (watch === undefined) {
      return answerStarting(reply);
    }
    const parsed = maintenanceBody.safeParse(request.body);
    if (!parsed.success) {
      return sendMistakes(reply, parsed.error);
    }
    const { checks, for: forMs, why } = parsed.data;
    const known = watch.list().map((check) => check.name);
    const unknown = checks?.find((each) => !known.includes(each));
    if (unknown !== undefined) {
      return sendError(reply, 404, notFound("check", unknown, known));
    }
    return reply
      .code(201)
      .send(
        watch.maintenance.start(
          checks ?? null,
          forMs,
          withAuthor(why),
          Date.now(),
        ),
      );
  });
  server.delete<{ Params: { id: string } }>(
    "/api/maintenance/:id",
    (request, reply) => {
      const watch = watching();
      if (watch === undefined) {
        return answerStarting(reply);
      }
      const { id } = request.params;
      const ended = watch.maintenance.end(id, Date.now());
      const concerned = ended.flatMap(({ checks }) => checks ?? "maintenance");
      for (const name of new Set(concerned)) {
        history.act(name, "asked", withAuthor("maintenance ended"));
      }
      return ended.length === 0
        ? sendError(
            reply,
            404,
            `maintenance "${id}" not found. Run \`hearth maintenance --list\` to list windows; planned ones are set in config/supervisor.yaml.`,
          )
        : reply.send({ ended });
    },
  );
}

function registerPings(
  server: FastifyInstance,
  watching: () => Watch | undefined,
): void {
  // curl sends the output of a job with an arbitrary content type.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      "*",
      { parseAs: "string", bodyLimit: 64 * 1024 },
      (_request, body, done) => done(null, body),
    );
    for (const method of ["GET", "POST"] as const) {
      scope.route<{
        Params: { readonly name: string; readonly how?: string };
      }>({
        method,
        url: "/ping/:name/:how?",
        handler: async (request, reply) => {
          const { name, how } = request.params;
          const ping = parsePing(how);
          if (ping === undefined) {
            return sendError(
              reply,
              400,
              `invalid ping "${how ?? ""}": use /ping/${name}, /ping/${name}/start, /ping/${name}/fail or /ping/${name}/<exit code>.`,
            );
          }
          const watch = watching();
          if (watch === undefined) {
            return answerStarting(reply);
          }
          const message = [ping.text, textIn(request.body)]
            .filter((text) => text !== "")
            .join(": ");
          const view = await watch.ping(
            name,
            ping.kind,
            message === "" ? null : message,
          );
          // This route is public, so existing names are not listed.
          return view === undefined
            ? sendError(
                reply,
                404,
                `heartbeat "${name}" not found in config/supervisor.yaml.`,
              )
            : { name, state: view.state };
        },
      });
    }
  });
}

/** The last part of a ping's address: nothing, start, fail, or the exit code of the job. */
function parsePing(
  how: string | undefined,
): { readonly kind: PingKind; readonly text: string } | undefined {
  if (how === undefined || how === "" || how === "0") {
    return { kind: "success", text: "" };
  }
  if (how === "start") {
    return { kind: "start", text: "" };
  }
  if (how === "fail") {
    return { kind: "fail", text: "" };
  }
  return /^\d{1,3}$/.test(how) && Number(how) <= 255
    ? { kind: "fail", text: `exit code ${Number(how)}` }
    : undefined;
}

/** The end of a job's output, which says most. */
function textIn(body: unknown): string {
  return typeof body === "string"
    ? body.replace(/\s+/g, " ").trim().slice(-MAX_PING_TEXT_LENGTH)
    : "";
}

function recordOf(db: DatabaseSync, name: string, from: number, until: number) {
  return (
    checkRecords(db, from, until).find((record) => record.name === name) ?? null
  );
}

function withCheck(
  reply: FastifyReply,
  watch: Watch | undefined,
  name: string,
  answer: (view: CheckView, watch: Watch) => unknown,
): FastifyReply {
  if (watch === undefined) {
    return answerStarting(reply);
  }
  const views = watch.list();
  const view = views.find((check) => check.name === name);
  return view === undefined
    ? sendError(
        reply,
        404,
        notFound(
          "check",
          name,
          views.map((check) => check.name),
        ),
      )
    : reply.send(answer(view, watch));
}

function answerStarting(reply: FastifyReply): FastifyReply {
  return sendError(reply, 503, "the supervisor is still starting; try again.");
}
