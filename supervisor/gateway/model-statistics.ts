import { z } from "zod";
import type { AdminApi } from "./admin-api.ts";

const figures = {
  requests: z.number(),
  failed: z.number(),
  interrupted: z.number(),
  latency_p50_ms: z.number().nullable(),
  latency_p95_ms: z.number().nullable(),
  tokens_per_second: z.number().nullable(),
} as const;

const statistics = z.object({
  data: z.array(
    z.looseObject({
      model_id: z.string(),
      ...figures,
      answered_at: z.string().nullable(),
      last_failure: z
        .looseObject({ at: z.string(), status: z.number(), error: z.string() })
        .nullable(),
    }),
  ),
});

/** How the calls of a deployment went. */
export type DeploymentStatistics = z.infer<typeof statistics>["data"][number];

const history = z.looseObject({
  step_hours: z.number(),
  total: z.looseObject(figures),
  data: z.array(z.looseObject({ from: z.string(), ...figures })),
});

/** How the calls of one model went, step by step. */
export type ModelHistory = z.infer<typeof history>;

/** Of the last 24 hours, by the id of the deployment; those without calls are missing. */
export async function readStatistics(
  api: AdminApi,
): Promise<ReadonlyMap<string, DeploymentStatistics>> {
  const { data } = statistics.parse(await api.ask("GET", "/model/statistics"));
  return new Map(data.map((each) => [each.model_id, each]));
}

/** `hours`: 24, 168 or 720. */
export async function readHistory(
  api: AdminApi,
  model: string,
  hours: number,
): Promise<ModelHistory> {
  const query = new URLSearchParams({ model, hours: String(hours) });
  return history.parse(await api.ask("GET", `/model/history?${query}`));
}
