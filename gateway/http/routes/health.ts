import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { unknownModel } from "../../access/models.ts";
import { out } from "../../admin/kinds/out.ts";
import { unknownModel as unknownDeployment } from "../../admin/model-views.ts";
import { validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import {
  readinessOf,
  readinessOfAll,
  STATUSES,
  type Readiness,
} from "../../readiness.ts";
import { withLoads } from "../../routing/health.ts";
import { askEveryWorker, ofEveryWorker } from "../../workers/answers.ts";
import { route, type OpenRoute } from "../route.ts";

const ALIVE = "I'm alive!";

/** GET /health/liveliness: no dependency is checked. */
export const liveliness: OpenRoute = {
  paths: ["/health/liveliness", "/health/liveness"],
  summary: "Check that the process is alive.",
  answer: z.literal(ALIVE),
  handler: (_gateway, reply) =>
    reply.type("application/json").send(JSON.stringify(ALIVE)),
};

const readinessAnswer = z.object({
  status: z.enum(STATUSES),
  db: z.enum(["connected", "Not connected", "Not writable"]),
  cache: z.enum(["redis", "memory"]).nullable(),
  limits: z.enum(["redis", "memory", "redis_away"]),
  version: out.text,
  /** The same, where LiteLLM's clients look for it. */
  litellm_version: out.text,
  journal: z.object({ pending: out.count }),
  /** Only of a gateway with several workers, all of which must be ready. */
  workers: z.object({ ready: out.count, configured: out.count }).optional(),
});

/** GET /health/readiness */
export const readiness: OpenRoute = {
  paths: ["/health/readiness"],
  summary: "Check that calls can be served; 503 if not.",
  answer: readinessAnswer,
  handler: async (gateway, reply) => {
    const own = readinessOf(gateway);
    const { group } = gateway;
    if (group === null) {
      return reply.code(codeOf(own)).send(shown(own, gateway));
    }
    const workers = await askEveryWorker(group, "readiness");
    const all = readinessOfAll(own, workers);
    const ready = workers.filter((one) => one?.status === "connected").length;
    return reply.code(codeOf(all)).send({
      ...shown(all, gateway),
      workers: { ready, configured: workers.length },
    });
  },
};

function codeOf({ status }: Readiness): 200 | 503 {
  return status === "connected" ? 200 : 503;
}

function shown(
  { status, connected, writable, cache, limits, pending }: Readiness,
  { version }: Pick<Gateway, "version">,
): z.output<typeof readinessAnswer> {
  return {
    status,
    db: !connected ? "Not connected" : writable ? "connected" : "Not writable",
    cache,
    limits,
    version,
    litellm_version: version,
    journal: { pending },
  };
}

const endpoint = z
  .object({
    model_name: out.text,
    model: out.text,
    model_id: out.text,
    api_base: out.text,
    cooling_down_until: out.text.nullable(),
    recent_calls: out.count,
    recent_failures: out.count,
    recent_rejections: out.count,
    /** null: it is no local runner. */
    runner: z
      .object({
        kind: z.enum(["ollama", "lm_studio", "llama_cpp", "vllm"]).nullable(),
        reachable: z.boolean().nullable(),
        model: z.enum(["loaded", "loading", "unloaded"]).nullable(),
        slots: out.count.nullable(),
        slots_used: out.count,
        queued: out.count,
      })
      .nullable(),
    error: out.text.optional(),
    unpriced: z.literal(true).optional(),
    waits_for: out.text.optional(),
  })
  .meta({ id: "EndpointHealth" });

const healthQuery = z.object({
  model: z.string().optional(),
  model_id: z.string().optional(),
  deep: z
    .enum(["true", "false"], "must be true or false")
    .default("false")
    .transform((deep) => deep === "true"),
  /** Seconds. */
  recent: z.coerce
    .number("must be a number of seconds")
    .int("must be a whole number of seconds")
    .min(1, "must be at least 1")
    .max(86_400, "must be at most 86400, a day")
    .optional(),
});

/** GET /health */
export const health = route(
  "GET /health",
  {
    summary: "Check every deployment.",
    input: healthQuery,
    answer: z.object({
      healthy_endpoints: z.array(endpoint),
      unhealthy_endpoints: z.array(endpoint),
      pending_endpoints: z.array(endpoint),
      blocked_endpoints: z.array(endpoint),
      healthy_count: out.count,
      unhealthy_count: out.count,
    }),
  },
  async (gateway, request) => {
    authorizeRoute(callerOf(request), "GET /health");
    const {
      model,
      model_id: id,
      deep,
      recent,
    } = validateBody(healthQuery, request.query);
    const { catalog, modelHealth } = gateway;
    const group = model === undefined ? null : catalog.find(model);
    if (model !== undefined && group === null) {
      throw unknownModel(model);
    }
    if (id !== undefined && !catalog.deployments.some((one) => one.id === id)) {
      throw unknownDeployment(id, "model_id");
    }
    const report = await modelHealth.check({
      alias: group?.configured ?? null,
      id: id ?? null,
      deep,
      recentMs: recent === undefined ? null : recent * 1_000,
    });
    return gateway.group === null
      ? report
      : withLoads(report, await ofEveryWorker(gateway, "loads"));
  },
  { fromTheStart: true },
);
