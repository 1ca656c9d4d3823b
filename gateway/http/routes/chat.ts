import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import { lookupAndAdmit, type Admitted } from "../../calls/admit.ts";
import { answerFromCache, sendAnswer } from "../../calls/answer.ts";
import type { CallBody } from "../../calls/body.ts";
import { startCall, type CallKind } from "../../calls/call.ts";
import { chooseDeployment } from "../../calls/choose-deployment.ts";
import { expectedOutput } from "../../calls/expected-output.ts";
import { askOnce } from "../../calls/single-flight.ts";
import { guardPrompt } from "../../calls/guard-prompt.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { passBytes } from "../../calls/pass-bytes.ts";
import { callProvider, type Upstream } from "../../calls/provider.ts";
import { recordRejection } from "../../calls/record-refusal.ts";
import { journalIntent } from "../../calls/record.ts";
import { streamAnswer } from "../../calls/stream.ts";
import { traceRejection } from "../../calls/trace.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { failStream, StreamComments } from "../../calls/stream-comments.ts";
import { whileAdmitted } from "../../calls/while-admitted.ts";
import type { Gateway } from "../../gateway.ts";
import { asCallError } from "../as-call-error.ts";
import { route, type Route, type RouteSchema } from "../route.ts";
import { chatAnswer } from "./call-answers.ts";
import { askSeveral, modelsOf } from "./chat-batch.ts";

/** llama.cpp's and LM Studio's -1 stands for no limit, as if the field were not set. */
export function tokenLimit(min: number) {
  return z
    .preprocess(
      (limit) => (limit === -1 ? undefined : limit),
      z.int().min(min).nullish(),
    )
    .optional();
}

const chatBody = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().optional() })
    .nullish(),
  n: z.int().min(1).max(128).nullish(),
  max_tokens: tokenLimit(1),
  max_completion_tokens: tokenLimit(1),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  user: z.string().nullish(),
  tools: z.array(z.looseObject({})).nullish(),
  ...METADATA_FIELDS,
});

const CHAT: CallKind = {
  route: "POST /v1/chat/completions",
  callType: "acompletion",
  endpoint: "chat",
  streams: true,
  shape: null,
  schema: chatBody,
  countInput: (gateway, body, model) => gateway.tokens.countChat(body, model),
  estimateOutput: (gateway, body, group) =>
    (limitOf(body) ?? expectedOutput(gateway, group)) *
    (numberOf(body, "n") ?? 1),
};

/** The larger one of both names: which of them counts differs between servers. null: neither is set. */
function limitOf(body: CallBody): number | null {
  const limits = ["max_completion_tokens", "max_tokens"]
    .map((field) => numberOf(body, field))
    .filter((limit) => limit !== null);
  return limits.length === 0 ? null : Math.max(...limits);
}

/** The steps of a call, in order; the same for every kind of call. */
export async function carryOut(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: CallKind,
): Promise<FastifyReply> {
  const caller = callerOf(request);
  authorizeRoute(caller, kind.route);
  const group = authorizeModel(gateway, caller, modelOf(request));
  const body = validateBody(kind.schema, request.body);
  if (kind.prepare !== undefined) {
    await kind.prepare(body);
  }
  const opened =
    kind.open === undefined ? null : await kind.open(gateway, request, body);
  const call = await startCall(gateway, request, {
    caller,
    named: group,
    sent: opened?.body ?? body,
    kind,
    responseContext: opened?.context,
  });
  const admitted = await lookupAndAdmit(gateway, call);
  call.responseContext?.background?.admitted();
  request.admitted = admitted;
  return whileAdmitted(gateway, call, reply.raw, async () => {
    const cached = await answerFromCache(gateway, call, admitted, reply);
    if (cached !== null) {
      return cached;
    }
    return askOnce(gateway, call, admitted, reply, async () => {
      const guarded = await guardPrompt(gateway, call);
      const client = new StreamComments(gateway, guarded, admitted, reply);
      const route = await chooseDeployment(gateway, guarded, client);
      await journalIntent(gateway, guarded, route.target.deployment);
      const upstream = await callProvider(gateway, guarded, route, client);
      return sendUpstream(gateway, admitted, upstream, reply);
    });
  });
}

function sendUpstream(
  gateway: Gateway,
  admitted: Admitted,
  upstream: Upstream,
  reply: FastifyReply,
): Promise<FastifyReply> {
  switch (upstream.kind) {
    case "whole":
      return sendAnswer(gateway, upstream.call, admitted, upstream, reply);
    case "stream":
      return streamAnswer(gateway, upstream.call, admitted, upstream, reply);
    case "bytes":
      return passBytes(gateway, upstream.call, admitted, upstream, reply);
  }
}

/** POST /v1/chat/completions */
export const chatCompletions = callRoute(
  CHAT,
  {
    summary:
      "Chat with a model (OpenAI's API), or with several separated by commas: a list of their answers.",
    answer: chatAnswer,
    azure: true,
  },
  async (gateway, request, reply, kind) => {
    const models = modelsOf(gateway, request);
    return models === null
      ? carryOut(gateway, request, reply, kind)
      : askSeveral(request, reply, models);
  },
);

type CallOptions = Pick<RouteSchema, "summary" | "answer" | "contentType"> &
  Pick<Route, "errorBody"> & {
    /** Also at the path of Azure-style clients, which has the alias. */
    readonly azure?: true;
    /** Further paths. */
    readonly alsoAt?: readonly string[];
  };

/** The route of one kind of call, also without `/v1`; `flow` carries its calls out. */
export function callRoute(
  kind: CallKind,
  { summary, answer, contentType, azure, alsoAt = [], ...options }: CallOptions,
  flow = carryOut,
): Route {
  const { route: name, schema: input, streams, takesFiles = false } = kind;
  const path = name.slice(name.indexOf("/v1") + "/v1".length);
  const paths = [
    path,
    ...alsoAt,
    ...(azure === true ? [`/openai/deployments/:deployment${path}`] : []),
  ];
  return route(
    name,
    { summary, input, answer, ...(contentType && { contentType }) },
    (gateway, request, reply) =>
      flow(gateway, request, reply, kind).catch((error: unknown) => {
        recordRejection(gateway, request, error, name);
        traceRejection(request.call, error);
        const known = () => asCallError(error, request, gateway.log);
        if (failStream(gateway, request.call, reply, known)) {
          return reply;
        }
        throw error;
      }),
    { ...options, streams, takesFiles, countsRequests: true, alsoAt: paths },
  );
}

export function numberOf(body: CallBody, field: string): number | null {
  const value = body[field];
  return typeof value === "number" ? value : null;
}
