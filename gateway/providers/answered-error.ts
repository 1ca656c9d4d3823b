import { usageFromOpenAI, type Usage } from "../tokens/reported-usage.ts";
import {
  isRecord,
  parseJson,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** An error that a provider sent with status 200. */
export interface AnsweredError {
  /** The status that it should have had. */
  readonly status: number;
  /** The error in the form of an error body. */
  readonly text: string;
  /** The usage that the provider reports nevertheless. */
  readonly usage: Usage | null;
}

/**
 * The error in a whole answer whose status is a success. OpenRouter reports errors of a model that had started to answer
 * this way (https://openrouter.ai/docs/api-reference/errors), in `error` or in the choices; a failed response of OpenAI's
 * Responses has `error` too; vLLM and others answer `"object": "error"`.
 */
export function errorInBody(body: Buffer): AnsweredError | null {
  // Inside a string the quotes are escaped: most answers are not parsed a second time.
  if (!body.includes('"error"')) {
    return null;
  }
  const parsed = parseJson(body.toString("utf8"));
  // Gemini's OpenAI-compatible endpoint wraps its errors in a list.
  return errorIn(Array.isArray(parsed) ? parsed[0] : parsed);
}

/** The same of one event of a stream. */
export function errorInEvent(data: string): AnsweredError | null {
  return data.includes('"error"') ? errorIn(parseJson(data)) : null;
}

function errorIn(answer: unknown): AnsweredError | null {
  if (!isRecord(answer)) {
    return null;
  }
  const error =
    found(answer["error"]) ??
    found(recordOf(answer["response"])["error"]) ??
    errorItself(answer) ??
    errorOfChoices(answer["choices"]);
  return error === null
    ? null
    : {
        status: statusOf(error),
        text: JSON.stringify({ error }),
        usage: usageFromOpenAI(
          answer["usage"] ?? recordOf(answer["response"])["usage"],
        ),
      };
}

function errorItself(answer: JsonRecord): JsonRecord | null {
  if (answer["type"] === "response.failed") {
    return { message: "The model failed to answer." };
  }
  const isError = answer["object"] === "error" || answer["type"] === "error";
  return isError ? answer : null;
}

/** Only if every choice failed; otherwise the others are the answer. */
function errorOfChoices(choices: unknown): JsonRecord | null {
  const all = recordsOf(choices);
  const errors = all.map(
    (choice) =>
      found(choice["error"]) ??
      (choice["finish_reason"] === "error"
        ? { message: "The model ended its answer with an error." }
        : null),
  );
  return errors.every((error) => error !== null) ? (errors[0] ?? null) : null;
}

function found(error: unknown): JsonRecord | null {
  if (typeof error === "string" && error !== "") {
    return { message: error };
  }
  return isRecord(error) && Object.keys(error).length > 0 ? error : null;
}

/** By words in the code or type, for errors without a status among their fields. */
const WORDS: readonly (readonly [RegExp, number])[] = [
  [/rate_?limit|quota|exhausted|too_many/i, 429],
  [/overloaded|unavailable/i, 503],
  [/timeout|deadline/i, 408],
  [/authentication|api_?key|unauthorized/i, 401],
  [/permission|forbidden/i, 403],
  [/not_?found/i, 404],
  [/too_large/i, 413],
  [/invalid|bad_?request|context_length|filter|policy|unprocessable/i, 400],
];

function statusOf(error: JsonRecord): number {
  const { code, status, type } = error;
  for (const value of [code, status].map(Number)) {
    if (Number.isInteger(value) && value >= 400 && value < 600) {
      return value;
    }
  }
  const words = [code, status, type].map(textOf).join(" ");
  return WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? 502;
}
