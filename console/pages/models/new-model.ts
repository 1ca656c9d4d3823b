import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { listDeployments } from "../../../supervisor/gateway/deployments.ts";
import {
  findRunners,
  RUNNER_VARIABLES,
  type FoundRunner,
} from "../../../supervisor/gateway/find-runners.ts";
import { readForm } from "../../http/forms.ts";
import { redirectWithMessage, showPage } from "../../http/show-page.ts";
import { gatewayHandlers, type NounContext } from "../nouns/noun-context.ts";
import { failedForm, type Filled } from "../nouns/noun-fields.ts";
import { viewFound } from "./discovery-view.ts";
import { MODEL_ADDRESS, MODELS_AWAY, MODELS_PATH } from "./model-address.ts";
import {
  fieldNamed,
  NEW_PATH,
  newModel,
  newModelBody,
  newModelFields,
  plainAddress,
} from "./model-form.ts";

const DISCOVER_PATH = `${MODELS_PATH}/discover`;

/** GET and POST /models/new: a deployment for any provider or address; POST /models/discover: the models of local runners. */
export function registerNewModel(
  server: FastifyInstance,
  context: NounContext,
  env: Environment,
): void {
  server.get(NEW_PATH, (request, reply) =>
    showForm(request, reply, { typed: {}, mistakes: {} }),
  );
  const handle = gatewayHandlers(context, MODELS_AWAY);
  server.post(NEW_PATH, handle(NEW_PATH, addModel));
  server.post(
    DISCOVER_PATH,
    handle(NEW_PATH, (request, reply) =>
      discover(request, reply, context, env),
    ),
  );
}

function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { typed, mistakes, status }: Filled,
): Promise<FastifyReply> {
  const isWrong = Object.keys(mistakes).length > 0;
  return showPage(
    request,
    reply,
    {
      title: "Add a model",
      look: isWrong ? "warn" : "none",
      current: MODELS_PATH,
      status: status ?? (isWrong ? 400 : 200),
    },
    "model-form",
    {
      action: NEW_PATH,
      back: MODELS_PATH,
      fields: newModelFields(typed, mistakes),
      mistake: mistakes["form"] ?? null,
      discover: DISCOVER_PATH,
      address: { value: typed["address"] ?? "", mistake: mistakes["address"] },
    },
  );
}

async function addModel(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: NounContext,
): Promise<FastifyReply> {
  const form = readForm(request, newModel);
  if (form.kind === "mistakes") {
    return showForm(request, reply, form);
  }
  try {
    await api.ask("POST", "/model/new", newModelBody(form.value));
  } catch (error) {
    const filled = failedForm(error, request.body, fieldNamed);
    return showForm(request, reply, filled);
  }
  const { model_name: alias, model } = form.value;
  return redirectWithMessage(
    reply,
    MODEL_ADDRESS.href(alias),
    `${model} added as "${alias}". Every gateway serves it within a second.`,
  );
}

const discoverForm = z.object({ address: plainAddress.optional() });

async function discover(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: NounContext,
  env: Environment,
): Promise<FastifyReply> {
  const form = readForm(request, discoverForm);
  if (form.kind === "mistakes") {
    return showForm(request, reply, form);
  }
  const { address = null } = form.value;
  const [runners, deployments] = await Promise.all([
    runnersAt(address, env),
    listDeployments(api),
  ]);
  const { title, look, ...view } = viewFound(runners, deployments, address);
  return showPage(
    request,
    reply,
    { title, look, current: MODELS_PATH },
    "models-found",
    { ...view, back: NEW_PATH },
  );
}

/** The runner at an address; without one those at the usual places. */
function runnersAt(
  address: string | null,
  env: Environment,
): Promise<readonly FoundRunner[]> {
  if (address !== null) {
    return findRunners({}, [address], undefined, []);
  }
  // By their values: stored models must not refer to variables.
  const urls = RUNNER_VARIABLES.flatMap((name) => {
    const url = readVariable(name, env);
    return url !== undefined && /^https?:/.test(url) && URL.canParse(url)
      ? [url]
      : [];
  });
  return findRunners({}, urls);
}
