import type { FastifyInstance } from "fastify";
import { exposeMetrics } from "../../supervisor/metrics/exposition.ts";
import {
  supervisorMetrics,
  type SupervisorFacts,
} from "../../supervisor/metrics/supervisor-metrics.ts";

/** GET /metrics: for Prometheus, with a separate token (`authorization` of its scrape configuration). */
export function registerMetricsRoutes(
  server: FastifyInstance,
  facts: () => Omit<SupervisorFacts, "cpuSeconds">,
): void {
  server.get("/metrics", async (_request, reply) => {
    const { user, system } = process.cpuUsage();
    const cpuSeconds = (user + system) / 1e6;
    const { contentType, text } = await exposeMetrics(
      supervisorMetrics({ ...facts(), cpuSeconds }),
    );
    return reply.type(contentType).send(text);
  });
}
