import { recordOf, textOf } from "../../core/json.ts";
import type { Session } from "../routing/strategies.ts";
import type { CallBody } from "./body.ts";
import type { Call } from "./call.ts";

/** A longer start would not distinguish more conversations. */
const MAX_START_CHARACTERS = 4_096;

/**
 * The session whose calls stay at one deployment: that of the stored response that it continues, as named by the client, its
 * `prompt_cache_key`, its end user, or a conversation by its first message of the user. null: a call without any of these, or a
 * key that wants none.
 */
export function sessionOf(
  { caller, payers, sessionId, body, responseContext }: Call,
  isDefault: boolean,
): Session | null {
  const wanted =
    caller.kind === "key" ? caller.metadata["session_affinity"] : undefined;
  if (!(typeof wanted === "boolean" ? wanted : isDefault)) {
    return null;
  }
  if (responseContext !== null && responseContext.session !== null) {
    return responseContext.session;
  }
  const named =
    sessionId || textOf(body["prompt_cache_key"]) || (payers.endUser ?? "");
  const name = named || (startOf(body) ?? responseContext?.rootId);
  return name === undefined
    ? null
    : { key: `${payers.apiKey}/${name}`, isNamed: named !== "" };
}

/** The first message of the user in a chat, messages or Responses call. */
function startOf(body: CallBody): string | undefined {
  const turns = [body["messages"], body["input"]].find(Array.isArray) ?? [];
  const first: unknown = turns.find(
    (turn) => recordOf(turn)["role"] === "user",
  );
  return first === undefined
    ? undefined
    : JSON.stringify(first, shortened).slice(0, MAX_START_CHARACTERS);
}

/** Each text is cut before it is written: a picture of some megabytes would cost each call some ms. */
function shortened(_name: string, value: unknown): unknown {
  return typeof value === "string"
    ? value.slice(0, MAX_START_CHARACTERS)
    : value;
}
