import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { DAY_MS } from "../../core/duration.ts";
import type { Alerting } from "../../supervisor/alerts/alerting.ts";
import { duration } from "../../supervisor/config/fields.ts";
import { withAuthor } from "../../supervisor/history/author.ts";
import type { History } from "../../supervisor/history/history.ts";
import { sendError, sendMistakes } from "./send-error.ts";

const MAX_SILENCE_MS = 90 * DAY_MS;

const silenceBody = z.strictObject({
  pattern: z
    .string("must be the name of an alarm")
    .trim()
    .min(1, "must be the name of an alarm")
    .max(200, "must be at most 200 characters"),
  for: duration.refine((ms) => ms <= MAX_SILENCE_MS, "must be at most 90d"),
  why: z
    .string("is required")
    .trim()
    .min(3, "must be at least 3 characters")
    .max(500, "must be at most 500 characters"),
});

/** GET /api/alerts; POST /api/alerts/test; GET, POST /api/silences; DELETE /api/silences/:idOrPattern. */
export function registerAlertRoutes(
  server: FastifyInstance,
  alerting: Alerting,
  history: History,
): void {
  server.get("/api/alerts", () => ({
    alarms: alerting.active(),
    sinks: alerting.sinks(),
    silences: alerting.silences(),
  }));
  server.post("/api/alerts/test", async () => ({
    sinks: await alerting.test(),
  }));
  server.get("/api/silences", () => ({ silences: alerting.silences() }));
  server.post("/api/silences", (request, reply) => {
    const parsed = silenceBody.safeParse(request.body);
    if (!parsed.success) {
      return sendMistakes(reply, parsed.error);
    }
    const { pattern, for: forMs, why } = parsed.data;
    return reply
      .code(201)
      .send(alerting.silence(pattern, forMs, withAuthor(why)));
  });
  server.delete<{ Params: { id: string } }>(
    "/api/silences/:id",
    (request, reply) => {
      const { id } = request.params;
      const ended = alerting.endSilences(id);
      for (const { pattern } of ended) {
        history.act(pattern, "asked", withAuthor("silence ended"));
      }
      if (ended.length > 0) {
        return reply.send({ ended });
      }
      const known = alerting.silences().map(({ pattern }) => pattern);
      return sendError(
        reply,
        404,
        known.length === 0
          ? `silence "${id}" not found; there are no silences.`
          : `silence "${id}" not found; available: ${known.join(", ")}.`,
      );
    },
  );
}
