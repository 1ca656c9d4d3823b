import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { Alerting } from "../../supervisor/alerts/alerting.ts";
import { duration } from "../../supervisor/config/fields.ts";
import { refuse } from "./refuse.ts";

const LONGEST_SILENCE_MS = 90 * 86_400_000;

const silenceBody = z.strictObject({
  pattern: z
    .string("must be the name of an alarm")
    .trim()
    .min(1, "must be the name of an alarm")
    .max(200, "must be at most 200 characters"),
  for: duration.refine((ms) => ms <= LONGEST_SILENCE_MS, "must be at most 90d"),
  why: z
    .string("must say why")
    .trim()
    .min(3, "must say why, in three characters or more")
    .max(500, "must be at most 500 characters"),
});

/** GET /api/alerts; POST /api/alerts/test; GET, POST /api/silences; DELETE /api/silences/:idOrPattern. */
export function registerAlertRoutes(
  server: FastifyInstance,
  alerting: Alerting,
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
      return refuse(
        reply,
        400,
        parsed.error.issues
          .map(
            ({ path, message }) => `${path.join(".") || "body"}: ${message}.`,
          )
          .join(" "),
      );
    }
    const { pattern, for: forMs, why } = parsed.data;
    return reply.code(201).send(alerting.silence(pattern, forMs, why));
  });
  server.delete<{ Params: { id: string } }>(
    "/api/silences/:id",
    (request, reply) => {
      const { id } = request.params;
      const ended = alerting.endSilences(id);
      if (ended.length > 0) {
        return reply.send({ ended });
      }
      const known = alerting.silences().map(({ pattern }) => pattern);
      return refuse(
        reply,
        404,
        known.length === 0
          ? `there is no silence "${id}", nor any other.`
          : `there is no silence "${id}"; there are ${known.join(", ")}.`,
      );
    },
  );
}
