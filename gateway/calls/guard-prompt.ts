import { itemsOf } from "../cache/key.ts";
import type { Gateway } from "../gateway.ts";
import type { CallGuards } from "../guardrails/call-guards.ts";
import { checkTexts } from "../guardrails/check-texts.ts";
import type { Guard } from "../guardrails/guard.ts";
import {
  hasTokenNumbers,
  textsOfBody,
  withTexts,
} from "../guardrails/texts.ts";
import { CallError } from "../http/errors.ts";
import type { Endpoint } from "../providers/wire.ts";
import type { CallBody } from "./body.ts";
import { tokenizedModel, type Call } from "./call.ts";
import { subjectOf } from "./guard-subject.ts";

/** Endpoints whose bodies guardrails can read. A call to any other is rejected rather than passed unchecked. */
const READABLE: ReadonlySet<Endpoint> = new Set([
  "chat",
  "completions",
  "embeddings",
  "responses",
  "messages",
  "moderations",
  "images",
]);

/**
 * Lets guardrails check the prompt before a provider is called, and starts those that check it during the call. Returns the
 * call with what they masked. Throws 400 if one blocks it.
 */
export async function guardPrompt(gateway: Gateway, call: Call): Promise<Call> {
  const { guards, kind } = call;
  if (guards === null) {
    return call;
  }
  if (!READABLE.has(kind.endpoint)) {
    throw new CallError(
      "invalid_request",
      `Guardrails cannot check ${kind.route} (${namesOf(guards)}). Use a key and a model without guardrails for it.`,
    );
  }
  const before = guards.of("pre_call");
  const guarded =
    before.length === 0 ? call : await checkCall(gateway, call, guards, before);
  const during = guards.of("during_call");
  if (during.length > 0) {
    guards.during = checkCall(gateway, guarded, guards, during).then(
      () => undefined,
    );
    // Awaited with the answer; if there is none, its failure is not reported.
    guards.during.catch(() => undefined);
  }
  return guarded;
}

function namesOf({ all }: CallGuards): string {
  return all.map(({ config }) => config.name).join(", ");
}

/** Everything that may be sent: the body, and what some fallbacks get instead. */
async function checkCall(
  gateway: Gateway,
  call: Call,
  guards: CallGuards,
  by: readonly Guard[],
): Promise<Call> {
  const subject = subjectOf(gateway, call, "request");
  const check = async (body: CallBody): Promise<CallBody> => {
    if (hasTokenNumbers(body)) {
      throw new CallError(
        "invalid_request",
        `Guardrails cannot check numbers of tokens (${namesOf(guards)}): send text.`,
      );
    }
    const texts = textsOfBody(body);
    const checked = await checkTexts(guards, by, texts, subject);
    const isSame =
      checked.content.every((text, at) => text === texts.content[at]) &&
      checked.other.every((text, at) => text === texts.other[at]);
    return isSame ? body : withTexts(body, checked);
  };
  const whole = call.whole ?? call;
  const body = await check(whole.body);
  const replacements = new Map(call.fallbacks.replacements);
  for (const [alias, replacement] of replacements) {
    replacements.set(alias, {
      ...replacement,
      body: await check(replacement.body),
    });
  }
  const checked = withBody(gateway, call, whole.body, body);
  return replacements.size === 0
    ? checked
    : { ...checked, fallbacks: { ...call.fallbacks, replacements } };
}

/** The call with a checked body; of one reduced to the items that are not cached, both. */
function withBody(
  gateway: Gateway,
  call: Call,
  before: CallBody,
  after: CallBody,
): Call {
  if (before === after) {
    return call;
  }
  const counted = (body: CallBody) => ({
    body,
    inputTokens: call.kind.countInput(
      gateway,
      body,
      tokenizedModel(call.group),
    ),
  });
  if (call.whole === null) {
    return { ...call, ...counted(after) };
  }
  const items = itemsOf(after["input"]);
  const masked = new Map(
    itemsOf(before["input"]).map((item, at) => [item, items[at]]),
  );
  const input = itemsOf(call.body["input"]).map((item) => masked.get(item));
  return {
    ...call,
    ...counted({ ...call.body, input }),
    whole: { ...call.whole, ...counted(after) },
  };
}
