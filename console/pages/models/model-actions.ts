import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { latency, money, readable } from "../../../core/words.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import {
  listDeployments,
  type DeploymentRow,
} from "../../../supervisor/gateway/deployments.ts";
import { storeForVariable } from "../../../supervisor/gateway/provider-keys.ts";
import { readForm } from "../../http/forms.ts";
import { redirectWithMessage } from "../../http/show-page.ts";
import { textIn } from "../nouns/noun-address.ts";
import {
  gatewayHandlers,
  needConfirmation,
  type NounContext,
} from "../nouns/noun-context.ts";
import { MODEL_ADDRESS, MODELS_AWAY, MODELS_PATH } from "./model-address.ts";
import { plainAddress } from "./model-form.ts";
import { isVariable, SUPPLY_PATH } from "./stored-values.ts";

/** POST /models/test, …/switch-off, …/switch-on and …/delete with the id of a deployment; POST /models/supply. */
export function registerModelActions(
  server: FastifyInstance,
  context: NounContext,
): void {
  const handle = gatewayHandlers(context, MODELS_AWAY);
  const onDeployment = (
    verb: string,
    act: (request: FastifyRequest, row: DeploymentRow) => Promise<string>,
    isGone = false,
  ) =>
    server.post(
      `${MODELS_PATH}/${verb}`,
      handle(MODELS_PATH, async (request, reply) => {
        const row = await findDeployment(context, textIn(request.query, "id"));
        const message = await act(request, row);
        return redirectWithMessage(
          reply,
          isGone ? MODELS_PATH : MODEL_ADDRESS.href(row.model_name),
          message,
        );
      }),
    );
  onDeployment("test", (_request, row) => testDeployment(context, row));
  onDeployment("switch-off", (_request, row) =>
    switchDeployment(context, row, "block"),
  );
  onDeployment("switch-on", (_request, row) =>
    switchDeployment(context, row, "unblock"),
  );
  onDeployment(
    "delete",
    async (request, { model_name: alias, model_info: { id } }) => {
      needConfirmation(request, readable(alias));
      await context.api.ask("POST", "/model/delete", { id });
      return `Deployment of "${alias}" deleted.`;
    },
    true,
  );
  server.post(SUPPLY_PATH, handle(MODELS_PATH, supply));
}

/** Throws a refusal. */
async function findDeployment(
  { api }: NounContext,
  id: string,
): Promise<DeploymentRow> {
  const all = await listDeployments(api);
  const found = all.find(({ model_info: info }) => info.id === id);
  if (found === undefined) {
    throw new Refusal("This deployment no longer exists.", 404, "id");
  }
  return found;
}

const tested = z.looseObject({
  status: z.enum(["success", "error"]),
  result: z.looseObject({
    error: z.string().optional(),
    latency_ms: z.number().optional(),
    prompt_tokens: z.number().optional(),
    completion_tokens: z.number().optional(),
    spend: z.number().optional(),
  }),
});

/** The result of one small call in a sentence. */
async function testDeployment(
  { patientApi }: NounContext,
  { model_info: { id }, provider_params: { model } }: DeploymentRow,
): Promise<string> {
  const { status, result } = tested.parse(
    await patientApi.ask("POST", "/health/test_connection", {
      model_info: { id },
    }),
  );
  if (status === "error") {
    return `Test of ${readable(model)} failed: ${readable(result.error ?? "no answer")}`;
  }
  const { latency_ms: ms = 0, spend = 0 } = result;
  const { prompt_tokens: input = 0, completion_tokens: output = 0 } = result;
  return `${readable(model)} answered in ${latency(ms)}: ${input} tokens in, ${output} out, ${money(spend)}.`;
}

async function switchDeployment(
  { api }: NounContext,
  { model_name: alias, model_info: { id } }: DeploymentRow,
  to: "block" | "unblock",
): Promise<string> {
  await api.ask("POST", `/model/${to}`, { model_id: id });
  return to === "block"
    ? `Deployment of "${alias}" switched off. It gets no calls.`
    : `Deployment of "${alias}" switched on.`;
}

const supplied = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("key"),
    variable: z.string().refine(isVariable),
    value: z.string("A key is required.").trim().min(1, "A key is required."),
  }),
  z.object({
    kind: z.literal("address"),
    variable: z.string().refine(isVariable),
    value: plainAddress,
  }),
]);

async function supply(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: NounContext,
): Promise<FastifyReply> {
  const form = readForm(request, supplied);
  if (form.kind === "mistakes") {
    const [mistake = "The form is incomplete."] = Object.values(form.mistakes);
    throw new Refusal(`Nothing was stored. ${mistake}`, 400, "value");
  }
  const { kind, variable, value } = form.value;
  const before = await waitingFor(api, variable);
  await storeForVariable(
    api,
    variable,
    kind === "key" ? { api_key: value } : { api_base: value },
  );
  const after = await waitingFor(api, variable);
  const ready = before.filter((alias) => !after.includes(alias));
  return redirectWithMessage(
    reply,
    MODELS_PATH,
    `${variable} stored, encrypted.${ready.length === 0 ? "" : ` Ready: ${ready.map(readable).join(", ")}.`}`,
  );
}

async function waitingFor(
  api: NounContext["api"],
  variable: string,
): Promise<readonly string[]> {
  const names = (await listDeployments(api))
    .filter(({ model_info: info }) => info.waits_for === variable)
    .map(({ model_name: alias }) => alias);
  return [...new Set(names)];
}
