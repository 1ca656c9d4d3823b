import type { RecordedCall } from "../../../supervisor/gateway/recorded-call.ts";
import { grouped, latency, money, readable } from "../../../core/words.ts";
import type { Look } from "../../../core/shapes.ts";
import type { Caller } from "../../sign-in/user-sign-in.ts";
import { callHref } from "../calls/call-choice.ts";
import { MAX_FORM } from "./accept-files.ts";
import type { Answer } from "./ask-model.ts";
import { MAX_MODELS, type Mistakes, type Typed } from "./playground-form.ts";
import { PLAYGROUND_SCRIPT } from "./playground-script.ts";
import type { Snippet } from "./snippets.ts";

export interface PlaygroundFacts {
  readonly typed: Typed;
  readonly mistakes: Mistakes;
  /** Names to choose from; others can be typed. */
  readonly models: readonly string[];
  /** Why there are none. */
  readonly trouble: string | null;
  readonly caller: Caller;
  readonly maySpend: boolean;
  readonly answers: readonly ShownAnswer[];
  readonly code: readonly Snippet[];
}

/** What templates/playground.eta shows. */
export function viewPlayground(facts: PlaygroundFacts) {
  const { typed, mistakes, answers, code, caller, maySpend } = facts;
  const { models, trouble } = facts;
  const area = (name: "system" | "prompt" | "tools", label: string) => ({
    kind: "lines" as const,
    name,
    label,
    value: typed[name],
  });
  return {
    mistakes,
    models,
    trouble,
    answers,
    code,
    maySpend,
    ...verdictOf(answers, mistakes),
    keyNote: `Sent to the gateway with the prompt, and not stored.${maySpend ? ` Without a key, calls are made with your session and count for the user default_user_id and the end user ${caller.name}.` : ""}`,
    fields: Array.from({ length: MAX_MODELS }, (_, at) => ({
      id: at === 0 ? "p-model" : `p-model-${at + 1}`,
      label: at === 0 ? "Model" : `Model ${at + 1} (optional)`,
      value: typed.models[at] ?? "",
      mistake: at === 0 ? mistakes.model : undefined,
    })),
    system: area("system", "System prompt (optional)"),
    prompt: { ...area("prompt", "Prompt"), mistake: mistakes.prompt },
    tools: {
      ...area("tools", "Tools (optional)"),
      note: 'A list in JSON: [{"type": "function", "function": {"name": "clock", "parameters": {…}}}]',
      mistake: mistakes.tools,
    },
    maxForm: MAX_FORM,
    script: PLAYGROUND_SCRIPT,
  };
}

function verdictOf(
  answers: readonly ShownAnswer[],
  mistakes: Mistakes,
): { readonly title: string; readonly look: Look } {
  if (Object.keys(mistakes).length > 0) {
    return { title: "Nothing was sent.", look: "warn" };
  }
  const failed = answers.filter(({ look }) => look === "bad").length;
  if (failed > 0) {
    return { title: `${failed} of ${answers.length} failed.`, look: "warn" };
  }
  return { title: "Playground", look: answers.length > 0 ? "ok" : "none" };
}

/** An answer as templates/playground-answer.eta shows it. */
export interface ShownAnswer {
  readonly model: string;
  readonly look: Look;
  readonly word: string;
  readonly text: string;
  readonly reasoning: string;
  readonly tools: Answer["tools"];
  /** Cost and tokens; of an answer that is not in the ledger yet its tokens. */
  readonly usage: readonly string[];
  readonly times: readonly string[];
  /** The page of the call; null: it is not in the ledger. */
  readonly call: string | null;
  readonly error: string | null;
}

/** `recorded`: the call in the ledger; undefined: not there, or not yet. */
export function viewAnswer(
  answer: Answer,
  recorded?: RecordedCall,
): ShownAnswer {
  const { callId, usage, firstTokenMs, totalMs, error } = answer;
  const measured =
    usage === null ? [] : [tokensInWords(usage.input, usage.output)];
  return {
    model: readable(answer.model),
    ...resultOf(answer),
    text: answer.text,
    reasoning: answer.reasoning,
    tools: answer.tools.map((tool) => ({
      name: readable(tool.name),
      arguments: indented(tool.arguments),
    })),
    usage: recorded === undefined ? measured : factsInLedger(recorded),
    times: [
      ...(firstTokenMs === null
        ? []
        : [`first token after ${latency(firstTokenMs)}`]),
      `${latency(totalMs)} in total`,
    ],
    call: callId === null ? null : callHref(callId),
    error: error === null ? null : readable(error),
  };
}

/** Cost and tokens as they are billed. */
export function factsInLedger(call: RecordedCall): readonly string[] {
  return [
    call.unpriced ? `${money(call.spend)} (no price known)` : money(call.spend),
    tokensInWords(call.prompt_tokens, call.completion_tokens),
  ];
}

function tokensInWords(input: number, output: number): string {
  return `${grouped(input)} tokens in, ${grouped(output)} out`;
}

function resultOf({ callId, finish, error }: Answer): {
  readonly look: Look;
  readonly word: string;
} {
  if (error !== null) {
    return { look: "bad", word: callId === null ? "rejected" : "failed" };
  }
  switch (finish) {
    case null:
      return { look: "warn", word: "ended early" };
    case "length":
      return { look: "warn", word: "cut off at the maximum length" };
    case "content_filter":
      return { look: "warn", word: "cut off by a content filter" };
    default:
      return { look: "ok", word: "answered" };
  }
}

/** Arguments that are JSON; what a model wrote incorrectly stays as it is. */
function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
