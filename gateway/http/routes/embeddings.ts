import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import { lookupAndAdmit } from "../../calls/admit.ts";
import { startCall, type CallKind } from "../../calls/call.ts";
import {
  areAllCached,
  withoutCached,
  embeddingsFromCache,
  readCached,
  sendEmbeddings,
} from "../../calls/embeddings.ts";
import { askOnce } from "../../calls/single-flight.ts";
import { guardPrompt } from "../../calls/guard-prompt.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { chooseDeployment } from "../../calls/choose-deployment.ts";
import { callProvider } from "../../calls/provider.ts";
import { journalIntent } from "../../calls/record.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { StreamComments } from "../../calls/stream-comments.ts";
import { whileAdmitted } from "../../calls/while-admitted.ts";
import type { Gateway } from "../../gateway.ts";
import { embeddingsAnswer } from "./call-answers.ts";
import { callRoute } from "./chat.ts";

const tokenIds = z.array(z.int().min(0)).min(1);

const embeddingBody = z.looseObject({
  model: z.string(),
  input: z.union(
    [
      z.string(),
      z.array(z.string()).min(1),
      tokenIds,
      z.array(tokenIds).min(1),
    ],
    {
      error: "must be a text, a list of texts, or lists of token numbers",
    },
  ),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: z.string().nullish(),
  ...METADATA_FIELDS,
});

const EMBEDDING: CallKind = {
  route: "POST /v1/embeddings",
  callType: "aembedding",
  endpoint: "embeddings",
  streams: false,
  shape: null,
  schema: embeddingBody,
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["input"], model),
  estimateOutput: () => 0,
};

/** The steps of every call, except that cached items of a list are not requested again. */
async function carryOutItems(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = callerOf(request);
  authorizeRoute(caller, EMBEDDING.route);
  const group = authorizeModel(gateway, caller, modelOf(request));
  const body = validateBody(embeddingBody, request.body);
  const call = await startCall(gateway, request, {
    caller,
    named: group,
    sent: body,
    kind: EMBEDDING,
  });
  const kept = await readCached(gateway, call);
  const reduced = withoutCached(gateway, call, kept);
  const admitted = await lookupAndAdmit(gateway, reduced, areAllCached(kept));
  request.admitted = admitted;
  return whileAdmitted(gateway, call, reply.raw, async () => {
    const cached = await embeddingsFromCache(
      gateway,
      call,
      admitted,
      kept,
      reply,
    );
    if (cached !== null) {
      return cached;
    }
    return askOnce(gateway, call, admitted, reply, async () => {
      const guarded = await guardPrompt(gateway, reduced);
      const client = new StreamComments(gateway, guarded, admitted, reply);
      const route = await chooseDeployment(gateway, guarded, client);
      await journalIntent(gateway, guarded, route.target.deployment);
      const upstream = await callProvider(gateway, guarded, route, client);
      if (upstream.kind !== "whole") {
        throw new Error("embeddings are never streamed");
      }
      return sendEmbeddings(gateway, guarded, admitted, upstream, kept, reply);
    });
  });
}

/** POST /v1/embeddings */
export const embeddings = callRoute(
  EMBEDDING,
  {
    summary: "Embed texts (OpenAI's API).",
    answer: embeddingsAnswer,
    azure: true,
  },
  carryOutItems,
);
