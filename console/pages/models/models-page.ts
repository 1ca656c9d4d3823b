import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Environment } from "../../../core/environment.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { listDeployments } from "../../../supervisor/gateway/deployments.ts";
import {
  readHistory,
  readStatistics,
} from "../../../supervisor/gateway/model-statistics.ts";
import { mayRequest } from "../../http/route-roles.ts";
import { showPage } from "../../http/show-page.ts";
import { textIn } from "../nouns/noun-address.ts";
import { gatewayHandlers, type NounContext } from "../nouns/noun-context.ts";
import { spans, type SpanName } from "../service/spans.ts";
import { MODEL_ADDRESS, MODELS_AWAY, MODELS_PATH } from "./model-address.ts";
import { registerModelActions } from "./model-actions.ts";
import { modelRows, readModelQuery, viewModels } from "./model-list.ts";
import { viewModel } from "./model-view.ts";
import { registerNewModel } from "./new-model.ts";
import { storedVariables, waitingVariables } from "./stored-values.ts";

/** GET /models: all deployments; GET /models/model?id=ALIAS: one alias; what can be done with them. */
export function registerModelsPage(
  server: FastifyInstance,
  context: NounContext,
  env: Environment,
): void {
  const handle = gatewayHandlers(context, MODELS_AWAY);
  server.get(MODELS_PATH, handle("/", showModels));
  server.get(MODEL_ADDRESS.route(), handle(MODELS_PATH, showModel));
  // Easier to type, for aliases without characters that have a meaning in addresses.
  server.get(`${MODELS_PATH}/:name`, (request, reply) =>
    reply.redirect(MODEL_ADDRESS.href(textIn(request.params, "name")), 303),
  );
  registerNewModel(server, context, env);
  registerModelActions(server, context);
}

async function showModels(
  request: FastifyRequest,
  reply: FastifyReply,
  { api, timeZone }: NounContext,
): Promise<FastifyReply> {
  const [deployments, statistics, stored] = await Promise.all([
    listDeployments(api),
    readStatistics(api),
    api.ask("GET", "/credentials"),
  ]);
  const role = request.requester?.role ?? null;
  const { title, look, ...view } = viewModels(
    modelRows({ deployments, statistics, timeZone }),
    readModelQuery(request.query),
    {
      timeZone,
      now: Date.now(),
      mayTest: mayRequest(role, "POST", `${MODELS_PATH}/test`),
    },
  );
  return showPage(
    request,
    reply,
    { title, look, current: MODELS_PATH, refreshes: true },
    "models",
    {
      ...view,
      label: "Models",
      classes: "named many",
      searchLabel: "Search by alias, model or address",
      waiting: waitingVariables(deployments),
      stored: storedVariables(credentialsIn(stored)),
    },
  );
}

const credentialList = z.looseObject({
  credentials: z.array(
    z.looseObject({
      credential_name: z.string(),
      credential_values: z.record(z.string(), z.string()),
    }),
  ),
});

function credentialsIn(answer: unknown) {
  return credentialList
    .parse(answer)
    .credentials.map(({ credential_name, credential_values: values }) => ({
      credential_name,
      values: Object.keys(values),
    }));
}

function hoursOf(span: SpanName): number {
  return spans[span].hours * spans[span].steps;
}

/** Of calls that models are found by which are no longer configured. */
const MAX_HOURS = hoursOf("month");

async function showModel(
  request: FastifyRequest,
  reply: FastifyReply,
  { api, timeZone }: NounContext,
): Promise<FastifyReply> {
  const name = MODEL_ADDRESS.idIn(request);
  const asked = textIn(request.query, "span");
  const span: SpanName = Object.hasOwn(spans, asked)
    ? (asked as SpanName)
    : "day";
  const [deployments, statistics, history] = await Promise.all([
    listDeployments(api),
    readStatistics(api),
    readHistory(api, name, hoursOf(span)),
  ]);
  const own = deployments.filter(({ model_name: alias }) => alias === name);
  if (
    own.length === 0 &&
    history.total.requests === 0 &&
    (await readHistory(api, name, MAX_HOURS)).total.requests === 0
  ) {
    throw new Refusal(
      `No model has the alias "${name}", and no call of the last ${spans.month.label} named it.`,
      404,
      "id",
    );
  }
  const rows = modelRows({ deployments: own, statistics, timeZone });
  const { title, look, ...view } = viewModel({
    name,
    rows,
    history,
    span,
    timeZone,
  });
  return showPage(
    request,
    reply,
    { title, look, current: MODELS_PATH, refreshes: true },
    "model",
    view,
  );
}
