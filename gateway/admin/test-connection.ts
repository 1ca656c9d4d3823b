import { z } from "zod";
import { tryDeployment, type Tried } from "../calls/health-check.ts";
import { howToSupplyGateway } from "../../core/installation.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { rowOfModel } from "../routing/stored-models.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name } from "./kinds/values.ts";
import {
  denyCredential,
  rejectUnused,
  requireModelReach,
  requireOwnKey,
  requirePublicAddress,
  teamIn,
  withAddressMark,
} from "./model-access.ts";

/** The alias of deployments that are only tested: metrics and the ledger name it. */
const ALIAS = "test_connection";

const MODES = ["chat", "embedding"] as const;

const params = z.looseObject({ model: name });
const info = z.looseObject({ id: name.nullish(), team_id: name.nullish() });

type Info = z.output<typeof info>;

const testConnection = adminRoute(
  "POST /health/test_connection",
  {
    summary:
      "Call a model for one token, or as little as its `mode` allows: a configured one by its id, alias or model, or one described as in POST /model/new.",
    input: z.object({
      litellm_params: params.nullish(),
      provider_params: params.nullish(),
      model_info: info.nullish(),
      mode: z.enum(MODES, `must be ${MODES.join(" or ")}`).nullish(),
    }),
    answer: z.object({
      status: z.enum(["success", "error"]),
      result: z.object({
        model: out.text,
        mode: out.text,
        model_id: out.text.optional(),
        error: out.text.optional(),
        latency_ms: out.count.optional(),
        prompt_tokens: out.count.optional(),
        completion_tokens: out.count.optional(),
        spend: out.dollars.optional(),
      }),
    }),
  },
  async (admin, given) => {
    const spelling =
      given.litellm_params == null ? "provider_params" : "litellm_params";
    const asked = given.provider_params ?? given.litellm_params ?? null;
    const about = given.model_info ?? {};
    const configured = configuredDeployment(admin, asked, about);
    if (configured === null && asked === null) {
      throw invalidParam(
        "litellm_params",
        "is required: the `model` to test, or the `id` of a configured one in `model_info`.",
      );
    }
    const found =
      configured ?? (await described(admin, asked ?? {}, spelling, about));
    await requireModelReach(admin, admin.pool, found.teamId);
    const deployment = { ...found, mode: given.mode ?? found.mode };
    const tried =
      found.pending === null
        ? await tryDeployment(admin.gateway, deployment)
        : {
            error: `${found.pending} is missing: ${howToSupplyGateway(found.pending, process.env)}.`,
          };
    return {
      status: tried.error === null ? "success" : "error",
      result: {
        model: `${found.providerName}/${found.model}`,
        mode: deployment.mode,
        ...(configured === null ? {} : { model_id: found.id }),
        ...figuresOf(tried),
      },
    };
  },
);

function figuresOf(tried: Tried) {
  if (tried.error !== null) {
    return { error: tried.error };
  }
  const { latencyMs, outcome } = tried;
  return {
    latency_ms: latencyMs,
    ...(outcome === null
      ? {}
      : {
          prompt_tokens: outcome.promptTokens,
          completion_tokens: outcome.completionTokens,
          spend: outcome.spend,
        }),
  };
}

/**
 * A configured deployment by its id, or by the alias or model that is all that was sent of it. With more parameters another
 * one is described: the key of a configured one is never sent to an address of the request.
 */
function configuredDeployment(
  { gateway, reachesAll, teams }: Admin,
  asked: Readonly<Record<string, unknown>> | null,
  { id }: Info,
): PricedDeployment | null {
  const only = asked === null || Object.keys(asked).length === 1;
  if (!only) {
    return null;
  }
  const { deployments } = gateway.catalog;
  if (id != null) {
    const found = deployments.find((one) => one.id === id);
    if (found === undefined) {
      throw new CallError(
        "unknown_object",
        `Model ${id} not found. GET /model/info lists the models.`,
        { param: "model_info.id" },
      );
    }
    return found;
  }
  const model = asked?.["model"];
  // Teams may have models of the same name, and keep theirs from each other.
  const within = deployments.filter(
    ({ teamId }) => reachesAll || teams.includes(teamId ?? ""),
  );
  return (
    within.find(({ alias }) => alias === model) ??
    within.find((one) => `${one.providerName}/${one.model}` === model) ??
    null
  );
}

/** The deployment that the parameters describe, with its price; throws 400 for what `POST /model/new` would reject. */
async function described(
  admin: Admin,
  asked: Readonly<Record<string, unknown>>,
  spelling: "litellm_params" | "provider_params",
  about: Info,
): Promise<PricedDeployment> {
  const { gateway } = admin;
  const { id: _, ...free } = about;
  rejectUnused(asked, spelling, free);
  await requireModelReach(admin, admin.pool, teamIn(free));
  denyCredential(admin, {}, asked, spelling);
  const requested = {
    id: crypto.randomUUID(),
    name: ALIAS,
    params: asked,
    spelling,
    info: withAddressMark(admin, free, {
      stored: {},
      changes: asked,
      info: {},
    }),
  };
  const read = rowOfModel(requested, gateway.config.general, gateway.env);
  if (!read.ok) {
    const [problem] = read.problems;
    const path =
      problem?.path.replace(/^provider_params/, spelling) ?? spelling;
    throw new CallError(
      "invalid_request",
      `The model is invalid: \`${path}\` ${problem?.message ?? "is invalid"}.`,
      { param: path },
    );
  }
  requireOwnKey(admin, requested, read.deployment);
  requirePublicAddress(admin, requested, read.deployment);
  return gateway.catalog.priced({ ...read.deployment, alias: ALIAS });
}

export const TEST_CONNECTION: readonly Route[] = [testConnection];
