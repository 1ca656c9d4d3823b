import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import type { Caller } from "../../access/callers.ts";
import {
  allowedNames,
  findModel,
  mayUse,
  ownNames,
  resolveAlias,
  teamOf,
} from "../../access/models.ts";
import { out } from "../../admin/kinds/out.ts";
import { queryFlag } from "../../admin/kinds/values.ts";
import { validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import { contextWindowOf, largest } from "../../pricing/token-limits.ts";
import { maxOutputTokens } from "../../providers/anthropic-model.ts";
import {
  isEnabled,
  MODEL_STATUSES,
  statusOf,
  type ModelGroup,
} from "../../routing/catalog.ts";
import { CallError } from "../errors.ts";
import { NO_INPUT, route } from "../route.ts";

const model = z
  .object({
    id: out.text,
    object: z.literal("model"),
    created: out.count,
    owned_by: out.text,
    status: z.enum(MODEL_STATUSES),
    mode: out.text.optional(),
    max_input_tokens: out.count.nullish(),
    max_output_tokens: out.count.optional(),
    max_tokens: out.count.nullish(),
    type: z.literal("model").optional(),
    display_name: out.text.optional(),
    created_at: out.text.optional(),
    name: out.text.optional(),
    displayName: out.text.optional(),
    inputTokenLimit: out.count.optional(),
    outputTokenLimit: out.count.optional(),
    supportedGenerationMethods: z.array(out.text).optional(),
  })
  .meta({ id: "Model" });

type Model = z.output<typeof model>;

const modelsQuery = z.object({
  ready: z
    .enum(["true", "false"], "must be true or false")
    .default("false")
    .transform((ready) => ready === "true"),
  /** Lists a wildcard beside the models that it admits. */
  return_wildcard_routes: queryFlag.default(false),
});

/** GET /v1/models */
export const listModels = route(
  "GET /v1/models",
  {
    summary:
      "List the models that the key may use, of a known provider's wildcard each; with `ready` only those that are ready for calls.",
    input: modelsQuery,
    answer: z.object({
      object: z.literal("list"),
      data: z.array(model),
      models: z.array(model).optional(),
      has_more: z.boolean().optional(),
      first_id: out.text.nullish(),
      last_id: out.text.nullish(),
    }),
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    const { ready, return_wildcard_routes: withWildcards } = validateBody(
      modelsQuery,
      request.query,
    );
    const data = [...listed(gateway, caller, withWildcards)]
      .filter(([, group]) => !ready || isReady(group))
      .map(([id, group]) => modelOf(gateway, request, id, group));
    return {
      object: "list",
      data,
      ...(isOfAnthropic(request)
        ? {
            has_more: false,
            first_id: data[0]?.id ?? null,
            last_id: data.at(-1)?.id ?? null,
          }
        : {}),
      ...(isOfGoogle(request) ? { models: data } : {}),
    };
  },
  { alsoAt: ["/models", "/v1beta/models"] },
);

/**
 * The models of a key by name: aliases, the models that wildcards admit, where they are known, and the names that the key,
 * its team and their lists of allowed models have for them.
 */
function listed(
  { catalog }: Pick<Gateway, "catalog">,
  caller: Caller,
  withWildcards: boolean,
): ReadonlyMap<string, ModelGroup> {
  const own = ownNames(caller).flatMap((name) => {
    const group = findModel(catalog, caller, resolveAlias(caller, name));
    return group === null ? [] : [[name, group] as const];
  });
  // A wildcard's models that the catalogue of prices does not have are known from these lists only.
  const named = allowedNames(caller).flatMap((name) => {
    const group = findModel(catalog, caller, name);
    const { configured = "" } = group ?? {};
    return group === null || !/.\*$/.test(configured) || name === configured
      ? []
      : [[name, group] as const];
  });
  const groups = catalog.groupsFor(teamOf(caller)).flatMap((group) => {
    const known = catalog.expand(group);
    return known.length === 0 || withWildcards ? [group, ...known] : known;
  });
  return new Map(
    [
      ...groups.map((group) => [group.alias, group] as const),
      ...own,
      ...named,
    ].filter(([name, group]) => mayUse(caller, group, name)),
  );
}

function isReady(group: ModelGroup): boolean {
  return isEnabled(group) && !group.alias.endsWith("*");
}

/** GET /v1/models/{id} */
export const showModel = route(
  "GET /v1/models/*",
  {
    summary: "Get an alias that the key may use.",
    input: NO_INPUT,
    answer: model,
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    const id = (request.params as { "*": string })["*"];
    const name = resolveAlias(caller, id);
    const group = findModel(gateway.catalog, caller, name);
    if (group === null || !mayUse(caller, group, name)) {
      throw new CallError(
        "unknown_object",
        `Model ${id} does not exist, or this key may not use it. GET /v1/models lists the models of this key.`,
        {
          param: "model",
        },
      );
    }
    return modelOf(gateway, request, id, group);
  },
  { alsoAt: ["/models/*", "/v1beta/models/*"] },
);

/** Whether the client is one of Anthropic's API, whose lists have fields of their own beside the common ones. */
function isOfAnthropic({ headers }: FastifyRequest): boolean {
  return headers["anthropic-version"] !== undefined;
}

/** The same of Google's API, some of whose clients ask for `/v1/models`. */
function isOfGoogle({ headers, routeOptions }: FastifyRequest): boolean {
  return (
    headers["x-goog-api-key"] !== undefined ||
    routeOptions.url?.startsWith("/v1beta/") === true
  );
}

/** With the limits that are known. https://platform.claude.com/docs/en/api/models/list https://ai.google.dev/api/models#Model */
function modelOf(
  { startedAtSeconds }: Pick<Gateway, "startedAtSeconds">,
  request: FastifyRequest,
  id: string,
  group: ModelGroup,
): Model {
  const model: Model = {
    id,
    object: "model",
    created: startedAtSeconds,
    owned_by: "hearth",
    status: statusOf(group),
  };
  const { deployments } = group;
  const mode = deployments[0]?.mode;
  const input = largest(deployments.map(contextWindowOf));
  const output = largest(deployments.map(maxOutputTokens));
  if (isOfGoogle(request)) {
    const isChat =
      mode === undefined || mode === "chat" || mode === "responses";
    return {
      ...model,
      name: `models/${id}`,
      displayName: id,
      ...(input === null ? {} : { inputTokenLimit: input }),
      ...(output === null ? {} : { outputTokenLimit: output }),
      supportedGenerationMethods: isChat
        ? ["generateContent", "countTokens"]
        : [],
    };
  }
  return isOfAnthropic(request)
    ? {
        ...model,
        max_input_tokens: input,
        max_tokens: output,
        type: "model",
        display_name: id,
        created_at: new Date(startedAtSeconds * 1_000).toISOString(),
      }
    : {
        ...model,
        ...(mode === undefined ? {} : { mode }),
        ...(input === null ? {} : { max_input_tokens: input }),
        ...(output === null ? {} : { max_output_tokens: output }),
      };
}
