import type { Look } from "../../../core/shapes.ts";
import {
  grouped,
  latency,
  momentFrom,
  money,
  readable,
  shortened,
} from "../../../core/words.ts";
import { isKeyHash } from "../../../supervisor/gateway/key-hash.ts";
import type { Call } from "../../../supervisor/gateway/usage.ts";
import { callHref } from "./call-choice.ts";

/** A call as templates/calls-table.eta shows it. */
interface CallRow {
  readonly at: string;
  /** Its page. */
  readonly href: string;
  readonly model: string;
  readonly look: Look;
  readonly word: string;
  /** The error of a failed call; empty for others. */
  readonly error: string;
  readonly latency: string;
  readonly tokens: string;
  readonly spend: string;
}

/** `moment`: how its time is written. */
export function viewCall(
  call: Call,
  timeZone: string,
  now: number,
  moment = momentFrom,
): CallRow {
  const isCall = call.payer === null;
  return {
    at: moment(now, Date.parse(call.endTime), timeZone),
    href: callHref(call.request_id),
    model: isCall
      ? readable(call.model_group ?? "unknown")
      : "manual correction or import",
    error: shortened(
      readable(call.metadata.error_information?.error_message ?? ""),
      MAX_CHARACTERS,
    ),
    latency: isCall ? latency(call.request_duration_ms) : "",
    tokens: grouped(call.total_tokens),
    spend: money(call.spend),
    ...resultOf(call),
  };
}

/** Of an error; all of it is on the call's page. */
const MAX_CHARACTERS = 160;

/** Null without a key: with the master key, or a correction. */
export function keyHashOf({ api_key: token }: Call): string | null {
  return token !== null && isKeyHash(token) ? token : null;
}

/** What became of a call. */
export function resultOf({
  status,
  cache_hit: hit,
}: Pick<Call, "status" | "cache_hit">): {
  readonly look: Look;
  readonly word: string;
} {
  switch (status) {
    case "success":
      return {
        look: "ok",
        word: hit === "True" ? "answered from the cache" : "answered",
      };
    case "failure":
      return { look: "bad", word: "failed" };
    case "interrupted":
      return { look: "warn", word: "interrupted" };
  }
}

/** Fewer values have no meaningful 95th percentile. */
const MIN_FOR_P95 = 20;

/** How long providers took to answer; null without an answer. */
export function latencyOf(
  calls: readonly Call[],
): { readonly median: string; readonly note: string } | null {
  const took = calls
    .filter(
      ({ status, cache_hit: hit, payer }) =>
        status === "success" && hit === "False" && payer === null,
    )
    .map(({ request_duration_ms: ms }) => ms)
    .toSorted((a, b) => a - b);
  const at = (share: number) =>
    latency(took[Math.ceil(took.length * share) - 1] ?? 0);
  if (took.length === 0) {
    return null;
  }
  const of = `median of the last ${took.length === 1 ? "answer" : `${took.length} answers`}`;
  return {
    median: at(0.5),
    note: took.length < MIN_FOR_P95 ? of : `${of}, 95 % within ${at(0.95)}`,
  };
}
