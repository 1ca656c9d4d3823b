import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { out } from "../../admin/kinds/out.ts";
import { lookupAndAdmit } from "../../calls/admit.ts";
import { startCall, type Call } from "../../calls/call.ts";
import {
  askModeration,
  MODERATION,
  moderationCall,
} from "../../calls/moderate.ts";
import { recordRejection } from "../../calls/record-refusal.ts";
import { validateBody } from "../../calls/validate.ts";
import type { GuardrailConfig } from "../../config/types.ts";
import type { Gateway } from "../../gateway.ts";
import { CallGuards } from "../../guardrails/call-guards.ts";
import { checkTexts } from "../../guardrails/check-texts.ts";
import { GuardUnavailable, type Subject } from "../../guardrails/guard.ts";
import { openGuard } from "../../guardrails/open-guard.ts";
import { unknownGuardrail } from "../../guardrails/select.ts";
import { NO_INPUT, route } from "../route.ts";

const KINDS: Readonly<Record<GuardrailConfig["check"]["kind"], string>> = {
  patterns: "litellm_content_filter",
  secrets: "hide-secrets",
  moderation: "openai_moderation",
  service: "generic_guardrail_api",
};

/** GET /guardrails/list */
export const listGuardrails = route(
  "GET /guardrails/list",
  {
    summary: "List the guardrails of this gateway, which any call may request.",
    input: NO_INPUT,
    answer: z.object({
      guardrails: z.array(
        z.object({
          guardrail_name: out.text,
          litellm_params: z.object({
            guardrail: out.text,
            mode: out.texts,
            default_on: z.boolean(),
          }),
          guardrail_info: out.anything.nullable(),
        }),
      ),
    }),
  },
  (gateway, request) => {
    authorizeRoute(callerOf(request), "GET /guardrails/list");
    return {
      guardrails: gateway.config.guardrails.map(
        ({ name, check, modes, defaultOn, info }) => ({
          guardrail_name: name,
          litellm_params: {
            guardrail: KINDS[check.kind],
            mode: modes,
            default_on: defaultOn,
          },
          guardrail_info: info,
        }),
      ),
    };
  },
);

const application = z.looseObject({
  guardrail_name: z.string(),
  text: z.string(),
  language: z.string().nullish(),
  entities: z.array(z.string()).nullish(),
});

/** POST /guardrails/apply_guardrail */
export const applyGuardrail = route(
  "POST /guardrails/apply_guardrail",
  {
    summary:
      "Check a text by one guardrail; the answer has what it masked. A blocked text is answered with 400.",
    input: application,
    answer: z.object({ response_text: out.text }),
  },
  (gateway, request) =>
    apply(gateway, request).catch((error: unknown) => {
      recordRejection(
        gateway,
        request,
        error,
        "POST /guardrails/apply_guardrail",
      );
      throw error;
    }),
);

async function apply(
  gateway: Gateway,
  request: FastifyRequest,
): Promise<{ readonly response_text: string }> {
  authorizeRoute(callerOf(request), "POST /guardrails/apply_guardrail");
  const { guardrail_name: name, text } = validateBody(
    application,
    request.body,
  );
  const known = gateway.config.guardrails;
  const config = known.find((one) => one.name === name);
  if (config === undefined) {
    throw unknownGuardrail(known, name, "guardrail_name");
  }
  const guard = openGuard(config);
  const { content } = await checkTexts(
    new CallGuards([guard], gateway),
    [guard],
    { content: [text], other: [] },
    subjectOf(gateway, request),
  );
  return { response_text: content[0] ?? "" };
}

function subjectOf(gateway: Gateway, request: FastifyRequest): Subject {
  return {
    callId: request.id,
    sessionId: null,
    caller: callerOf(request),
    endUser: null,
    inputType: "request",
    tools: null,
    moderate: (model, texts) => moderate(gateway, request, model, texts),
  };
}

/** Like a call of the caller's: within its limits, and billed. */
async function moderate(
  gateway: Gateway,
  request: FastifyRequest,
  model: string,
  texts: readonly string[],
): Promise<readonly string[]> {
  const group = gateway.catalog.find(model);
  if (group === null) {
    throw new GuardUnavailable(`its model ${model} does not exist`);
  }
  const origin: Call = await startCall(gateway, request, {
    caller: callerOf(request),
    named: group,
    sent: { model, input: texts },
    kind: MODERATION,
  });
  const call = moderationCall(gateway, origin, model, texts);
  await lookupAndAdmit(gateway, call);
  return askModeration(gateway, call);
}
