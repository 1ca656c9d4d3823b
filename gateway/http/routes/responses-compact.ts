import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { out } from "../../admin/kinds/out.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import {
  parseRecord,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../../core/json.ts";
import { compactionItem, SUMMARY_REQUEST } from "../../responses/compaction.ts";
import { itemsOf, withIds } from "../../responses/items.ts";
import { newId } from "../../responses/response-context.ts";
import { openResponse } from "../../responses/open-response.ts";
import { ownerOf } from "../../responses/owner.ts";
import { CallError, invalidParam } from "../errors.ts";
import { headersToPass, passOn, sendInner } from "../inner-request.ts";
import { route } from "../route.ts";

const NAME = "POST /v1/responses/compact";

const compactBody = z.looseObject({
  model: z.string(),
  input: z
    .union([z.string(), z.array(z.looseObject({}))], {
      error: "must be a text or a list of items",
    })
    .nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
});

const compacted = z
  .object({
    id: out.text,
    object: z.literal("response.compaction"),
    created_at: out.count,
    output: z.array(z.looseObject({ id: out.text, type: out.text })),
    usage: z.looseObject({}).nullable(),
  })
  .meta({ id: "CompactedResponse" });

/** POST /v1/responses/compact, with any model: it is asked for a summary, in a call like any other. */
export const compactResponse = route(
  NAME,
  {
    summary:
      "Replace a conversation by a summary: the messages of the user and an encrypted item, which are sent in its place.",
    input: compactBody,
    answer: compacted,
  },
  compact,
  { alsoAt: ["/responses/compact"] },
);

async function compact(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const caller = callerOf(request);
  authorizeRoute(caller, NAME);
  modelOf(request);
  const body = validateBody(compactBody, request.body);
  const asked = { ...body, input: body.input ?? [], store: false };
  const opened = await openResponse(gateway, caller, request.id, asked, {
    mayBeEmpty: true,
  });
  const items = itemsOf(opened.body["input"]);
  if (items.length === 0) {
    throw invalidParam(
      "input",
      "or `previous_response_id` is required: there is nothing to compact.",
    );
  }
  const answer = await sendInner(request, "/v1/responses", {
    ...opened.body,
    input: [...items, { role: "user", content: SUMMARY_REQUEST }],
    store: false,
    stream: false,
  });
  const response = parseRecord(answer.payload);
  if (answer.statusCode !== 200 || response === null) {
    return passOn(reply, answer);
  }
  reply.headers(headersToPass(answer));
  const id = newId("resp", randomUUID());
  const { general } = gateway.config;
  const summary = summaryIn(response, body.model);
  const cmp = id.replace("resp", "cmp");
  return {
    id,
    object: "response.compaction",
    created_at: Math.floor(Date.now() / 1_000),
    output: [
      ...withIds(items.filter(isOfUser), id),
      compactionItem(summary, cmp, ownerOf(caller), general),
    ],
    usage: response["usage"] ?? null,
  };
}

function isOfUser({ type, role }: JsonRecord): boolean {
  return (type ?? "message") === "message" && role === "user";
}

function summaryIn({ output }: JsonRecord, model: string): string {
  const text = recordsOf(output)
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => recordsOf(content))
    .map((part) => textOf(part["text"]))
    .join("");
  if (text === "") {
    throw new CallError(
      "upstream_error",
      `${model} answered without a summary. Try again, or compact with another model.`,
      { status: 502 },
    );
  }
  return text;
}
