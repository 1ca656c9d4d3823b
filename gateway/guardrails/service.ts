import { request } from "undici";
import { z } from "zod";
import { parseJson } from "../../core/json.ts";
import type { Caller } from "../access/callers.ts";
import type { GuardrailCheck } from "../config/types.ts";
import { outgoingAgent } from "../providers/outgoing-agent.ts";
import {
  GuardUnavailable,
  type Checking,
  type Subject,
  type Verdict,
} from "./guard.ts";

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const agent = outgoingAgent({ maxResponseSize: MAX_ANSWER_BYTES });

const answerShape = z.looseObject({
  action: z.enum(["BLOCKED", "NONE", "GUARDRAIL_INTERVENED"]),
  blocked_reason: z.string().nullish(),
  texts: z.array(z.string()).nullish(),
  images: z.array(z.unknown()).nullish(),
});

type ServiceCheck = Extract<GuardrailCheck, { kind: "service" }>;

/**
 * Asks an HTTP service that speaks LiteLLM's generic guardrail API.
 * https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api
 */
export function serviceChecking(service: ServiceCheck): Checking {
  return {
    kind: "remote",
    async check(texts, subject) {
      const answer = await ask(service, questionOf(service, texts, subject));
      return verdictOf(answer, texts);
    },
  };
}

function questionOf(
  { params }: ServiceCheck,
  texts: readonly string[],
  { callId, sessionId, caller, endUser, inputType, tools }: Subject,
): object {
  return {
    texts,
    request_data: callerData(caller, endUser),
    input_type: inputType,
    litellm_call_id: callId,
    litellm_trace_id: sessionId,
    additional_provider_specific_params: params,
    ...(tools === null ? {} : { tools }),
  };
}

function callerData(caller: Caller, endUser: string | null): object {
  const key = caller.kind === "key" ? caller : null;
  return {
    user_api_key_hash: key?.token ?? null,
    user_api_key_alias: key?.alias ?? null,
    user_api_key_user_id: caller.userId,
    user_api_key_team_id: key?.team?.id ?? null,
    user_api_key_team_alias: key?.team?.alias ?? null,
    user_api_key_end_user_id: endUser,
    user_api_key_org_id: key?.organization?.id ?? null,
  };
}

async function ask(
  { url, headers, timeoutMs }: ServiceCheck,
  question: object,
): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { statusCode, body } = await request(url, {
      dispatcher: agent,
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [
            name,
            value.reveal(),
          ]),
        ),
      },
      body: JSON.stringify(question),
      signal,
    });
    if (statusCode !== 200) {
      await body.dump();
      throw new GuardUnavailable(
        `its service answered with status ${statusCode}`,
      );
    }
    const answer = parseJson(await body.text());
    if (answer === undefined) {
      throw new GuardUnavailable("its service did not answer with JSON");
    }
    return answer;
  } catch (error) {
    if (error instanceof GuardUnavailable) {
      throw error;
    }
    throw new GuardUnavailable(
      signal.aborted
        ? `its service did not answer within ${timeoutMs / 1_000} s`
        : "its service cannot be reached",
    );
  }
}

function verdictOf(answer: unknown, texts: readonly string[]): Verdict {
  const read = answerShape.safeParse(answer);
  if (!read.success) {
    throw new GuardUnavailable(
      "its service did not answer in the shape of the generic guardrail API",
    );
  }
  const { action, blocked_reason: reason, texts: changed } = read.data;
  switch (action) {
    case "NONE":
      return { kind: "passed" };
    case "BLOCKED":
      return {
        kind: "blocked",
        reason: reason ?? "content violates its policy",
        logged: "its service objects",
      };
    case "GUARDRAIL_INTERVENED":
      if (read.data.images != null) {
        throw new GuardUnavailable(
          "its service changed images, which is not supported",
        );
      }
      if (changed == null) {
        return { kind: "passed" };
      }
      if (changed.length !== texts.length) {
        throw new GuardUnavailable(
          "its service did not return as many texts as it was sent",
        );
      }
      return { kind: "changed", texts: changed };
  }
}
