import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { authenticate } from "../access/authenticate.ts";
import { authorizeModel } from "../access/models.ts";
import { lookupAndAdmit } from "../calls/admit.ts";
import { answerFromCache, sendAnswer } from "../calls/answer.ts";
import { beginCall, type CallKind } from "../calls/call.ts";
import { askOnce } from "../calls/flight.ts";
import { callProvider, chooseDeployment } from "../calls/provider.ts";
import { journalIntent } from "../calls/record.ts";
import { streamAnswer } from "../calls/stream.ts";
import { whileAdmitted } from "../calls/underway.ts";
import { modelOf, validateBody } from "../calls/validate.ts";
import type { Gateway } from "../gateway.ts";

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
      error: "expected a text, a list of texts, or lists of token numbers",
    },
  ),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: z.string().nullish(),
  metadata: z.looseObject({}).nullish(),
});

const EMBEDDING: CallKind = {
  callType: "aembedding",
  path: "/embeddings",
  streams: false,
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["input"], model),
  estimateOutput: () => 0,
};

/** POST /v1/embeddings: the way of a chat call, without streams. */
export async function embeddings(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = await authenticate(gateway, request.headers);
  const group = authorizeModel(gateway, caller, modelOf(request.body));
  const body = validateBody(embeddingBody, request.body);
  const call = await beginCall(
    gateway,
    request,
    caller,
    group,
    body,
    EMBEDDING,
  );
  const admitted = await lookupAndAdmit(gateway, call);
  return whileAdmitted(gateway, call, async () => {
    const cached = await answerFromCache(gateway, call, admitted, reply);
    if (cached !== null) return cached;
    return askOnce(gateway, call, admitted, reply, async () => {
      const route = await chooseDeployment(gateway, call);
      await journalIntent(gateway, call, route.first.deployment);
      const upstream = await callProvider(gateway, call, route);
      return upstream.kind === "stream"
        ? streamAnswer(gateway, call, admitted, upstream, reply)
        : sendAnswer(gateway, call, admitted, upstream, reply);
    });
  });
}
