import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import { listModels } from "../../../supervisor/gateway/first-call.ts";
import { recordedCall } from "../../../supervisor/gateway/recorded-call.ts";
import { mayRequest } from "../../http/route-roles.ts";
import { showPage } from "../../http/show-page.ts";
import type { Caller } from "../../sign-in/user-sign-in.ts";
import { textIn } from "../nouns/noun-address.ts";
import type { NounContext } from "../nouns/noun-context.ts";
import { acceptFiles, takeForm, MAX_FORM } from "./accept-files.ts";
import { AnswerSlots } from "./answer-slots.ts";
import {
  askWith,
  callerOf,
  leaving,
  mistakeOfKey,
  streamAnswer,
  type Playground,
} from "./answer-stream.ts";
import { sentenceOf, wholeAnswer } from "./ask-model.ts";
import {
  MAX_MODELS,
  readPlaygroundForm,
  type PlaygroundForm,
} from "./playground-form.ts";
import {
  factsInLedger,
  viewAnswer,
  viewPlayground,
  type PlaygroundFacts,
  type ShownAnswer,
} from "./playground-view.ts";
import { snippetsOf } from "./snippets.ts";

const PATH = "/playground";
const SESSION_PATH = `${PATH}/session`;

const MAX_NAME_LENGTH = 200;

/**
 * /playground: asks models with a key that is typed for it, or with the session. POST /playground answers with a page, for
 * browsers without script; /playground/answer and /playground/session stream one answer. A key is passed on to the gateway,
 * and used for nothing else.
 */
export function registerPlaygroundPage(
  server: FastifyInstance,
  context: NounContext,
): void {
  server.register(async (scope) => {
    acceptFiles(scope);
    const playground = { ...context, slots: new AnswerSlots() };
    const limits = { bodyLimit: MAX_FORM };
    scope.get(PATH, (request, reply) => showForm(request, reply, playground));
    scope.post(PATH, limits, (request, reply) =>
      answerForm(request, reply, playground),
    );
    scope.post(`${PATH}/answer`, limits, (request, reply) =>
      streamAnswer(request, reply, playground, false),
    );
    scope.post(SESSION_PATH, limits, (request, reply) =>
      streamAnswer(request, reply, playground, true),
    );
    scope.get(`${PATH}/calls/:id`, async ({ params }) => {
      const call = await recordedCall(context.api, textIn(params, "id"));
      return {
        usage:
          call === undefined ? ["cost not recorded yet"] : factsInLedger(call),
      };
    });
  });
}

async function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: Playground,
): Promise<FastifyReply> {
  const { model } = request.query as { readonly model?: unknown };
  const named = [model ?? []]
    .flat()
    .filter((each) => typeof each === "string")
    .map((each) => each.slice(0, MAX_NAME_LENGTH))
    .slice(0, MAX_MODELS);
  const known = await knownModels(api);
  const models = named.length > 0 ? named : known.models.slice(0, 1);
  const typed = { models, system: "", prompt: "", tools: "" };
  return show(request, reply, { ...known, typed });
}

/** The form with the answers, or with code. */
async function answerForm(
  request: FastifyRequest,
  reply: FastifyReply,
  playground: Playground,
): Promise<FastifyReply> {
  const sent = takeForm(request);
  const form = await readPlaygroundForm(sent);
  const isCode = sent.get("show") === "code";
  const mistakes = {
    ...form.mistakes,
    ...(isCode ? {} : mistakeOfKey(form, maySpend(callerOf(request)))),
  };
  const known = await knownModels(playground.api);
  const facts = { ...known, typed: form.typed, mistakes };
  if (Object.keys(mistakes).length > 0) {
    return show(request, reply, facts);
  }
  if (isCode) {
    const [model = ""] = form.models;
    const code = snippetsOf(playground.address, model, form.prompt);
    return show(request, reply, { ...facts, code });
  }
  const answers = await answersTo(request, reply, playground, form);
  return answers === null ? reply : show(request, reply, { ...facts, answers });
}

/** All models are asked at once; null: the browser has left. */
async function answersTo(
  request: FastifyRequest,
  reply: FastifyReply,
  playground: Playground,
  form: PlaygroundForm,
): Promise<readonly ShownAnswer[] | null> {
  const caller = callerOf(request);
  const release = playground.slots.take(caller.name, form.models.length);
  const left = leaving(reply, release);
  const answerOf = async (model: string) => {
    const answer = await wholeAnswer(
      askWith(
        playground,
        { key: form.key, user: caller.name, model, prompt: form.prompt },
        left,
      ),
    );
    const { callId } = answer;
    return viewAnswer(
      answer,
      callId === null ? undefined : await recordedCall(playground.api, callId),
    );
  };
  try {
    return await Promise.all(form.models.map(answerOf));
  } catch (error) {
    if (left.aborted) {
      return null;
    }
    throw error;
  }
}

function maySpend({ role }: Caller): boolean {
  return mayRequest(role, "POST", SESSION_PATH);
}

type KnownModels = Pick<PlaygroundFacts, "models" | "trouble">;

async function knownModels(api: AdminApi): Promise<KnownModels> {
  try {
    const models = (await listModels(api))
      .filter(({ id, pending }) => !pending && !id.endsWith("*"))
      .map(({ id }) => id);
    return { models, trouble: null };
  } catch (error) {
    return { models: [], trouble: sentenceOf(error) };
  }
}

function show(
  request: FastifyRequest,
  reply: FastifyReply,
  facts: KnownModels &
    Pick<PlaygroundFacts, "typed"> &
    Partial<Pick<PlaygroundFacts, "mistakes" | "answers" | "code">>,
): Promise<FastifyReply> {
  const caller = callerOf(request);
  const { mistakes = {}, answers = [], code = [] } = facts;
  const view = viewPlayground({
    ...facts,
    mistakes,
    answers,
    code,
    caller,
    maySpend: maySpend(caller),
  });
  const { title, look } = view;
  const status = Object.keys(mistakes).length > 0 ? 400 : 200;
  return showPage(
    request,
    reply,
    { title, look, current: "/models", status },
    "playground",
    view,
  );
}
