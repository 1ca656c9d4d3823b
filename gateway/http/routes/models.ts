import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { mayUse } from "../../access/models.ts";
import { validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import { CallError } from "../errors.ts";
import type { ModelGroup } from "../../routing/catalog.ts";

interface Model {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: string;
  /** Ours: `pending` until its variable is set. */
  readonly status: "ready" | "pending";
}

export const modelsQuery = z.object({
  ready: z
    .enum(["true", "false"], "write true or false")
    .default("false")
    .transform((ready) => ready === "true"),
});

/** GET /v1/models: the aliases that the key may use; with `ready` those that a call can name and that can answer. */
export async function listModels(
  gateway: Gateway,
  request: FastifyRequest,
): Promise<{ readonly object: "list"; readonly data: readonly Model[] }> {
  const caller = callerOf(request);
  const { ready } = validateBody(modelsQuery, request.query);
  const data = gateway.catalog.groups
    .filter(
      (group) => mayUse(caller, group.alias) && (!ready || isReady(group)),
    )
    .map((group) => modelOf(gateway, group));
  return { object: "list", data };
}

function isReady({ alias, pending }: ModelGroup): boolean {
  return pending === null && !alias.endsWith("*");
}

/** GET /v1/models/{id}: one alias, if the key may use it. */
export async function showModel(
  gateway: Gateway,
  request: FastifyRequest<{ Params: { "*": string } }>,
): Promise<Model> {
  const caller = callerOf(request);
  const id = request.params["*"];
  const group = mayUse(caller, id) ? gateway.catalog.find(id) : null;
  if (group === null) {
    throw new CallError(
      "unknown_object",
      `There is no model ${id} for this key. Call \`/v1/models\` to see those there are.`,
      {
        param: "model",
      },
    );
  }
  return modelOf(gateway, group);
}

function modelOf(gateway: Gateway, { alias, pending }: ModelGroup): Model {
  return {
    id: alias,
    object: "model",
    created: gateway.startedAtSeconds,
    owned_by: "hearth",
    status: pending === null ? "ready" : "pending",
  };
}
