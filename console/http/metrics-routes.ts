import type { FastifyInstance } from "fastify";
import {
  exposeMetrics,
  METRICS_CONTENT_TYPE,
} from "../../supervisor/metrics/exposition.ts";
import {
  supervisorMetrics,
  type SupervisorFacts,
} from "../../supervisor/metrics/supervisor-metrics.ts";

/** GET /metrics: for Prometheus, by a token of its own (`authorization` of its scrape configuration). */
export function registerMetricsRoutes(
  server: FastifyInstance,
  facts: () => Omit<SupervisorFacts, "cpuSeconds">,
): void {
  server.get(
    "/metrics",
    { config: { audience: "metrics" } },
    (_request, reply) => {
      const { user, system } = process.cpuUsage();
      const cpuSeconds = (user + system) / 1e6;
      return reply
        .type(METRICS_CONTENT_TYPE)
        .send(exposeMetrics(supervisorMetrics({ ...facts(), cpuSeconds })));
    },
  );
}
