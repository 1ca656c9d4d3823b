import { request } from "undici";
import type { Deployment } from "../config/types.ts";
import { unreachable } from "../providers/failure.ts";

/** What `/health` tells of one deployment; never a secret. */
export interface EndpointHealth {
  readonly model_name: string;
  readonly model: string;
  readonly model_id: string;
  readonly api_base: string;
  readonly error?: string;
  /** The variable that a pending one waits for. */
  readonly waits_for?: string;
}

export interface HealthReport {
  readonly healthy_endpoints: readonly EndpointHealth[];
  readonly unhealthy_endpoints: readonly EndpointHealth[];
  readonly pending_endpoints: readonly EndpointHealth[];
  readonly healthy_count: number;
  readonly unhealthy_count: number;
}

export interface ModelHealth {
  /** All deployments, or those of one alias. */
  check(alias: string | null): Promise<HealthReport>;
}

const KEEP_MS = 30_000;
const LIMIT_MS = 10_000;

/**
 * Asks deployments whether they answer: their model list, which no runner has to load a model for and no provider
 * charges for. All at once, one question to each address, kept for 30 s.
 */
export function createModelHealth(
  deployments: () => readonly Deployment[],
  now: () => number = Date.now,
): ModelHealth {
  const answers = new Map<
    string,
    { readonly at: number; readonly error: Promise<string | null> }
  >();

  function errorOf(deployment: Deployment): Promise<string | null> {
    const name = `${deployment.apiBase}|${deployment.provider}|${deployment.apiKey?.reveal() ?? ""}`;
    const known = answers.get(name);
    if (known !== undefined && now() - known.at < KEEP_MS) return known.error;
    const error = askForModels(deployment);
    answers.set(name, { at: now(), error });
    return error;
  }

  return {
    async check(alias) {
      const asked = deployments().filter(
        (deployment) => alias === null || deployment.alias === alias,
      );
      const pending = asked.filter((deployment) => deployment.pending !== null);
      const results = await Promise.all(
        asked
          .filter((deployment) => deployment.pending === null)
          .map(async (deployment) => ({
            deployment,
            error: await errorOf(deployment),
          })),
      );
      const healthy = results
        .filter(({ error }) => error === null)
        .map(({ deployment }) => describe(deployment));
      const unhealthy = results.flatMap(({ deployment, error }) =>
        error === null ? [] : [{ ...describe(deployment), error }],
      );
      return {
        healthy_endpoints: healthy,
        unhealthy_endpoints: unhealthy,
        pending_endpoints: pending.map((deployment) => ({
          ...describe(deployment),
          waits_for: deployment.pending ?? "",
        })),
        healthy_count: healthy.length,
        unhealthy_count: unhealthy.length,
      };
    },
  };
}

function describe({ alias, model, id, apiBase }: Deployment): EndpointHealth {
  return { model_name: alias, model, model_id: id, api_base: apiBase };
}

/** null when it answers, else one sentence. */
async function askForModels(deployment: Deployment): Promise<string | null> {
  const headers: Record<string, string> = {};
  const key = deployment.apiKey?.reveal();
  if (key !== undefined)
    Object.assign(
      headers,
      deployment.provider === "anthropic"
        ? { "x-api-key": key, "anthropic-version": "2023-06-01" }
        : { authorization: `Bearer ${key}` },
    );
  const path = deployment.provider === "anthropic" ? "/v1/models" : "/models";
  try {
    const answer = await request(deployment.apiBase + path, {
      headers,
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await answer.body.dump();
    return answer.statusCode < 400
      ? null
      : `${deployment.apiBase} answered ${answer.statusCode} when asked for its models`;
  } catch (error) {
    if (error instanceof DOMException)
      return `${deployment.apiBase} did not answer within ${LIMIT_MS / 1_000} s`;
    return unreachable(error, deployment.apiBase).message;
  }
}
