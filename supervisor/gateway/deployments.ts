import { z } from "zod";
import type { AdminApi } from "./admin-api.ts";

/** GET /model/info, as far as displayed. Dollars per token. */
const deploymentList = z.object({
  data: z.array(
    z.looseObject({
      model_name: z.string(),
      model_info: z.looseObject({
        id: z.string(),
        /** Added with POST /model/new, not by the configuration file. */
        db_model: z.boolean(),
        mode: z.string(),
        litellm_provider: z.string(),
        /** The team that alone may call it. */
        team_id: z.string().nullish(),
        // Gateways of earlier releases do not answer these three.
        /** Switched off. */
        blocked: z.boolean().default(false),
        /** The variable without which it cannot be called. */
        waits_for: z.string().nullable(),
        /** What can be stored in place of that variable. */
        storable: z.enum(["key", "address"]).nullable().default(null),
        cooling_down_until: z.string().nullable().default(null),
        input_cost_per_token: z.number().nullable(),
        output_cost_per_token: z.number().nullable(),
        max_input_tokens: z.number().nullable(),
        /** null: it is no local runner. */
        runner: z.looseObject({ reachable: z.boolean().nullable() }).nullable(),
      }),
      provider_params: z.looseObject({
        model: z.string(),
        api_base: z.string().optional(),
      }),
    }),
  ),
});

export type DeploymentRow = z.infer<typeof deploymentList>["data"][number];

/** The deployments of all aliases. */
export async function listDeployments(
  api: AdminApi,
): Promise<readonly DeploymentRow[]> {
  return deploymentList.parse(await api.ask("GET", "/model/info")).data;
}
