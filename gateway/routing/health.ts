import { request } from "undici";
import { isLocalRunner } from "../pricing/local-runner.ts";
import { pricesCalls } from "../pricing/price-card.ts";
import { unreachable } from "../providers/failure.ts";
import { wireOf } from "../providers/families.ts";
import type { PricedDeployment } from "./catalog.ts";
import type { CooldownState } from "./cooldowns.ts";

/** What `/health` tells of one deployment; never a secret. */
export interface EndpointHealth {
  readonly model_name: string;
  readonly model: string;
  readonly model_id: string;
  readonly api_base: string;
  readonly error?: string;
  /** Nobody knows what its calls cost: they are billed 0. */
  readonly unpriced?: true;
  /** The variable that a pending one waits for. */
  readonly waits_for?: string;
  /** When its cooldown ends; a wildcard's: the latest of its models. */
  readonly cooling_down_until: string | null;
  /** Of the current minute, on this instance. */
  readonly recent_calls: number;
  readonly recent_failures: number;
  /** Calls rejected in that minute because the deployment was cooling down, with every other one of its alias. */
  readonly recent_rejections: number;
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
  check(alias: string | null, how: HealthQuestion): Promise<HealthReport>;
}

export interface HealthQuestion {
  /** Calls local runners too, which may have to load a model for it. */
  readonly deep: boolean;
  /** Deployments that answered a call so lately are not asked, and the others for their model list where they have one. */
  readonly recentMs: number | null;
}

interface Answer {
  /** null when it answers, else one sentence. */
  readonly error: string | null;
  /** It answers and has no list of models. */
  readonly listless: boolean;
}

const KEEP_MS = 30_000;
const LIMIT_MS = 10_000;

/**
 * Asks deployments whether they answer, all at once: local runners for their model list, which makes none of them load
 * a model, everyone else (or, `deep`, everyone) by a call of one token. Kept for 30 s.
 * With `recentMs` a question costs nothing where calls answer it already, or a list does.
 */
export function createModelHealth(
  deployments: () => readonly PricedDeployment[],
  tryDeployment: (deployment: PricedDeployment) => Promise<string | null>,
  cooldownOf: (deployment: PricedDeployment) => CooldownState,
  answeredAt: (deploymentId: string) => number | null,
  now: () => number = Date.now,
): ModelHealth {
  const answers = new Map<
    string,
    { readonly at: number; readonly answer: Promise<Answer> }
  >();

  function kept(name: string, ask: () => Promise<Answer>): Promise<Answer> {
    const known = answers.get(name);
    // A clock that was set back would keep an answer for long.
    if (known !== undefined && Math.abs(now() - known.at) < KEEP_MS) {
      return known.answer;
    }
    const answer = ask();
    answers.set(name, { at: now(), answer });
    return answer;
  }

  async function errorOf(
    deployment: PricedDeployment,
    { deep, recentMs }: HealthQuestion,
  ): Promise<string | null> {
    const { id, apiBase, model } = deployment;
    const answered = answeredAt(id);
    const isRecent =
      recentMs !== null &&
      answered !== null &&
      Math.abs(now() - answered) < recentMs;
    if (isRecent) {
      return null;
    }
    // One question to each runner for its list, to everyone else one for each key.
    const isLocal = isLocalRunner(deployment);
    const list = () =>
      kept(isLocal ? apiBase : `list|${id}`, () => askForModels(deployment));
    const call = () =>
      kept(`call|${id}`, async () => ({
        error: await tryDeployment(deployment),
        listless: false,
      }));
    // A wildcard has no model of its own that could be called.
    if ((isLocal && !deep) || model.endsWith("*")) {
      return (await list()).error;
    }
    if (recentMs === null) {
      return (await call()).error;
    }
    const { error, listless } = await list();
    return listless ? (await call()).error : error;
  }

  const described = (deployment: PricedDeployment) =>
    describe(deployment, cooldownOf(deployment));

  return {
    async check(alias, how) {
      const asked = deployments().filter(
        (deployment) => alias === null || deployment.alias === alias,
      );
      const pending = asked.filter((deployment) => deployment.pending !== null);
      const results = await Promise.all(
        asked
          .filter((deployment) => deployment.pending === null)
          .map(async (deployment) => ({
            deployment,
            error: await errorOf(deployment, how),
          })),
      );
      const healthy = results
        .filter(({ error }) => error === null)
        .map(({ deployment }) => described(deployment));
      const unhealthy = results.flatMap(({ deployment, error }) =>
        error === null ? [] : [{ ...described(deployment), error }],
      );
      return {
        healthy_endpoints: healthy,
        unhealthy_endpoints: unhealthy,
        pending_endpoints: pending.map((deployment) => ({
          ...described(deployment),
          waits_for: deployment.pending ?? "",
        })),
        healthy_count: healthy.length,
        unhealthy_count: unhealthy.length,
      };
    },
  };
}

function describe(
  deployment: PricedDeployment,
  { cooling, calls, failures, rejections }: CooldownState,
): EndpointHealth {
  const { alias, model, id, apiBase, priceCard } = deployment;
  return {
    model_name: alias,
    model,
    model_id: id,
    api_base: apiBase,
    cooling_down_until:
      cooling === null ? null : new Date(cooling.until).toISOString(),
    recent_calls: calls,
    recent_failures: failures,
    recent_rejections: rejections,
    ...(priceCard === null || !pricesCalls(priceCard)
      ? { unpriced: true as const }
      : {}),
  };
}

async function askForModels(deployment: PricedDeployment): Promise<Answer> {
  const { apiBase, provider } = deployment;
  const path = provider === "anthropic" ? "/v1/models" : "/models";
  try {
    const answer = await request(apiBase + path, {
      headers: wireOf(provider).headers(deployment, {}),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await answer.body.dump();
    const { statusCode } = answer;
    return {
      error:
        statusCode < 400
          ? null
          : `${apiBase} answered ${statusCode} when asked for its models`,
      listless: [404, 405, 501].includes(statusCode),
    };
  } catch (error) {
    const late = `${apiBase} did not answer within ${LIMIT_MS / 1_000} s`;
    return {
      error:
        error instanceof DOMException
          ? late
          : unreachable(error, apiBase).message,
      listless: false,
    };
  }
}
