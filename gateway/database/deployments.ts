import type { Deployment } from "../config/types.ts";
import { query, type Pool } from "./pool.ts";

/** Stores the deployments to which model ids in the ledger's rows refer. */
export async function recordDeployments(
  pool: Pool,
  deployments: readonly Deployment[],
): Promise<void> {
  await query(
    pool,
    `INSERT INTO deployments (model_id, model_name, provider, model, api_base)
       SELECT DISTINCT ON (1) * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
       ON CONFLICT (model_id) DO UPDATE SET model_name = excluded.model_name, provider = excluded.provider,
         model = excluded.model, api_base = excluded.api_base, updated_at = now()`,
    [
      deployments.map((deployment) => deployment.id),
      deployments.map((deployment) => deployment.alias),
      deployments.map((deployment) => deployment.providerName),
      deployments.map((deployment) => deployment.model),
      deployments.map((deployment) => deployment.apiBase),
    ],
  );
}
