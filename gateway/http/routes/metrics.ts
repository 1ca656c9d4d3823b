import type { FastifyRequest } from "fastify";
import { authenticate } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { hashKey, readKey, sameHash } from "../../access/keys.ts";
import { out } from "../../admin/kinds/out.ts";
import type { Gateway } from "../../gateway.ts";
import { exposeMetrics } from "../../metrics/exposition.ts";
import { NO_INPUT, route } from "../route.ts";

/** GET /metrics: for Prometheus, by `metrics_key` or a key that may read everything. */
export const metrics = route(
  "GET /metrics",
  {
    summary: "Get all metrics, for Prometheus.",
    input: NO_INPUT,
    answer: out.text,
    contentType: "text/plain",
  },
  async (gateway, request, reply) => {
    if (!hasMetricsKey(gateway, request)) {
      authorizeRoute(
        await authenticate(gateway, request.headers),
        "GET /metrics",
      );
    }
    const { contentType, text } = await exposeMetrics(gateway);
    return reply.type(contentType).send(text);
  },
  { fromTheStart: true, ownKeys: true },
);

function hasMetricsKey(gateway: Gateway, request: FastifyRequest): boolean {
  const { metricsKey } = gateway.config.general;
  const sent = readKey(request.headers);
  return (
    metricsKey !== null &&
    sent !== null &&
    sameHash(hashKey(sent), hashKey(metricsKey.reveal()))
  );
}
