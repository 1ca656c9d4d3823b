import type { Gateway } from "../gateway.ts";
import { checkTexts } from "../guardrails/check-texts.ts";
import type { Guard } from "../guardrails/guard.ts";
import { StreamCheck } from "../guardrails/stream-check.ts";
import { textsOfAnswer, withAnswerTexts } from "../guardrails/texts.ts";
import { CallError, loggedMessage } from "../http/errors.ts";
import type { Endpoint, TranslatedAnswer } from "../providers/wire.ts";
import type { Call } from "./call.ts";
import { subjectOf } from "./guard-subject.ts";
import { recordAnswer, type WholeUpstream } from "./record-answer.ts";

/** Endpoints whose answers have texts. */
const WITH_TEXT: ReadonlySet<Endpoint> = new Set([
  "chat",
  "completions",
  "responses",
  "messages",
]);

/**
 * Awaits the check of the prompt, and lets guardrails check a whole answer. Returns the answer with what they masked. One that
 * is blocked is recorded with what it cost before the error is thrown.
 */
export async function guardAnswer(
  gateway: Gateway,
  call: Call,
  upstream: WholeUpstream,
  { body, facts }: TranslatedAnswer,
): Promise<Buffer> {
  if (call.guards === null) {
    return body;
  }
  try {
    await call.guards.during;
    return await checkAnswer(gateway, call, body);
  } catch (error) {
    if (error instanceof CallError) {
      const information = { error_message: loggedMessage(error) };
      await recordAnswer(gateway, call, upstream, facts, {
        metadata: { error_information: information },
        status: "failure",
      });
    }
    throw error;
  }
}

async function checkAnswer(
  gateway: Gateway,
  call: Call,
  body: Buffer,
): Promise<Buffer> {
  const { guards } = call;
  const after = answerGuardsOf(call);
  if (guards === null || after.length === 0) {
    return body;
  }
  const texts = textsOfAnswer(body);
  const { content } = await checkTexts(
    guards,
    after,
    { content: texts, other: [] },
    subjectOf(gateway, call, "response"),
  );
  return content.every((text, at) => text === texts[at])
    ? body
    : withAnswerTexts(body, content);
}

/** The check of a stream; null: no guardrail checks answers of this call. */
export function streamCheckOf(
  gateway: Gateway,
  call: Call,
): StreamCheck | null {
  const { guards } = call;
  const after = answerGuardsOf(call);
  return guards === null || after.length === 0
    ? null
    : new StreamCheck(guards, after, subjectOf(gateway, call, "response"));
}

function answerGuardsOf({ guards, kind }: Call): readonly Guard[] {
  return guards !== null && WITH_TEXT.has(kind.endpoint)
    ? guards.of("post_call")
    : [];
}
