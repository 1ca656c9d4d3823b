import type { Look } from "../../../core/shapes.ts";
import {
  grouped,
  latency,
  secondsFrom,
  money,
  readable,
} from "../../../core/words.ts";
import type { CallInFull } from "../../../supervisor/gateway/calls.ts";
import { shortKeyHash } from "../../../supervisor/gateway/key-hash.ts";
import { MODEL_ADDRESS } from "../models/model-address.ts";
import { KEYS_PATH } from "../nouns/noun-context.ts";
import { TEAM_ADDRESS } from "../nouns/team-address.ts";
import { USER_ADDRESS } from "../nouns/user-address.ts";
import { callHref, callsHref } from "./call-choice.ts";
import { keyHashOf, resultOf } from "./call-rows.ts";
import { viewCost } from "./cost-view.ts";
import { viewPath } from "./path-view.ts";

/** What templates/call.eta shows. */
export function viewCall(call: CallInFull, timeZone: string, now: number) {
  const error = call.metadata.error_information?.error_message ?? "";
  return {
    ...headingOf(call),
    facts: factsOf(call, timeZone, now),
    error: error === "" ? null : readable(error),
    disconnected: call.metadata.client_disconnected === true,
    path: viewPath(call, timeZone),
    figures: figuresOf(call),
    cost: viewCost(call),
    details: detailsOf(call),
    prompt: promptOf(call),
    lists: listsOf(call),
  };
}

function nameOf({ model_group: model }: CallInFull): string {
  return readable(model ?? "Unknown model");
}

function headingOf(call: CallInFull): {
  readonly title: string;
  readonly look: Look;
} {
  if (call.payer !== null) {
    return { title: "Spend was corrected, without a call.", look: "none" };
  }
  const took = latency(call.request_duration_ms);
  const { look } = resultOf(call);
  switch (call.status) {
    case "success":
      return {
        look,
        title:
          call.cache_hit === "True"
            ? `The cache answered for ${nameOf(call)} in ${took}.`
            : `${nameOf(call)} answered in ${took} for ${money(call.spend)}.`,
      };
    case "failure":
      return { look, title: `${nameOf(call)} failed after ${took}.` };
    case "interrupted":
      return { look, title: `The call of ${nameOf(call)} was interrupted.` };
  }
}

interface Fact {
  readonly text: string;
  readonly href: string | null;
}

/** When, and whose. */
function factsOf(
  call: CallInFull,
  timeZone: string,
  now: number,
): readonly Fact[] {
  const { user, team_id: team } = call;
  const alias = call.metadata.user_api_key_alias;
  const hash = keyHashOf(call);
  return [
    {
      text: secondsFrom(now, Date.parse(call.startTime), timeZone),
      href: null,
    },
    ...(call.payer !== null || call.model_group === null
      ? []
      : [
          {
            text: `model ${readable(call.model_group)}`,
            href: MODEL_ADDRESS.href(call.model_group),
          },
        ]),
    ...(call.payer === null
      ? [
          {
            text:
              hash === null
                ? "master key"
                : `key ${readable(alias ?? shortKeyHash(hash))}`,
            href:
              hash === null || alias === null ? null : `${KEYS_PATH}/${hash}`,
          },
        ]
      : [{ text: `payer ${readable(call.payer)}`, href: null }]),
    ...(user === null
      ? []
      : [
          {
            text: `user ${readable(call.user_alias ?? user)}`,
            href: USER_ADDRESS.href(user),
          },
        ]),
    ...(team === null
      ? []
      : [
          {
            text: `team ${readable(call.team_alias ?? team)}`,
            href: TEAM_ADDRESS.href(team),
          },
        ]),
  ];
}

function figuresOf({
  times,
  request_duration_ms: totalMs,
  payer,
  ...call
}: CallInFull) {
  if (payer !== null) {
    return [];
  }
  const ms = (value: number | null) => (value === null ? "–" : latency(value));
  const tokens = (
    count: number,
    parts: readonly (readonly [string, number])[],
  ) => ({
    value: grouped(count),
    note: parts
      .filter(([, part]) => part > 0)
      .map(([name, part]) => `${grouped(part)} ${name}`)
      .join(", "),
  });
  return [
    {
      name: "Total time",
      value: latency(totalMs),
      note: "from request to end",
    },
    {
      name: "First token",
      value: ms(times.first_token_ms),
      note:
        times.first_token_ms === null ? "not streamed" : "after the request",
    },
    {
      name: "Waiting for providers",
      value: ms(times.waited_ms),
      note: "all attempts, and pauses between them",
    },
    {
      name: "Hearth's own time",
      value: ms(times.overhead_ms),
      note: "limits, queues, translation, accounting",
    },
    {
      name: "Speed",
      value:
        times.tokens_per_second === null
          ? "–"
          : `${grouped(times.tokens_per_second, times.tokens_per_second < 10 ? 1 : 0)}`,
      note: "output tokens per second",
    },
    {
      name: "Tokens in",
      ...tokens(call.prompt_tokens, [
        ["cached", call.cached_tokens],
        ["written to the cache", call.cache_write_tokens],
      ]),
    },
    { name: "Tokens out", ...tokens(call.completion_tokens, []) },
  ].map((figure) => ({ ...figure, href: null }));
}

const KINDS: Readonly<Record<string, string>> = {
  acompletion: "chat completion",
  atext_completion: "text completion",
  aembedding: "embedding",
  anthropic_messages: "Anthropic message",
  aresponses: "response",
  amoderation: "moderation",
  aimage_generation: "image generation",
  aimage_edit: "image edit",
  aimage_variation: "image variation",
  arerank: "rerank",
  aspeech: "speech",
  atranscription: "transcription",
  atranslation: "translation",
  health_check: "health check",
};

/** What identifies the call here, at the client and at the provider; headers of its answer have the same values. */
function detailsOf(call: CallInFull) {
  const cache =
    call.cache_hit === "True"
      ? "hit"
      : call.cache_key === null
        ? "bypass"
        : "miss";
  const model = call.path.findLast(({ deployment }) => deployment !== null);
  const all: readonly (readonly [string, string | null, string | null])[] = [
    ["Kind of call", KINDS[call.call_type] ?? call.call_type, null],
    ["Call ID", call.request_id, "x-hearth-call-id"],
    ["Model", call.model_group, "x-hearth-model-group"],
    ["Deployment", model?.deployment?.model_id ?? null, "x-hearth-model-id"],
    ["Provider", call.custom_llm_provider, "x-hearth-provider"],
    ["Cache", call.payer === null ? cache : null, "x-hearth-cache"],
    ["Cache key", call.cache_key, "x-hearth-cache-key"],
    ["Provider's ID of the answer", call.response_id, null],
    ["Session", call.session_id, "x-hearth-trace-id"],
    ["End user", call.end_user, "x-hearth-end-user-id"],
    ["Organization", call.organization_id, null],
    ["Tags", call.request_tags.join(", "), "x-hearth-tags"],
    ["Client address", call.requester_ip_address, null],
  ];
  return all.flatMap(([name, value, header]) =>
    value === null || value === ""
      ? []
      : [{ name, value: readable(value), header: header ?? "" }],
  );
}

function promptOf(call: CallInFull) {
  const hash = keyHashOf(call);
  return {
    href: call.prompt_is_stored ? callHref(call.request_id, "/prompt") : null,
    isCall: call.payer === null,
    reason:
      call.status === "success"
        ? "Not stored."
        : "Not stored, because no answer arrived.",
    edit:
      call.status === "success" &&
      hash !== null &&
      call.metadata.user_api_key_alias !== null
        ? `${KEYS_PATH}/${hash}/edit`
        : null,
  };
}

/** Lists of calls that have something in common with this one. */
function listsOf(call: CallInFull): readonly Fact[] {
  const { model_group: model, status } = call;
  const hash = keyHashOf(call);
  return [
    ...(hash === null
      ? []
      : [{ text: "Calls of this key", href: callsHref({ key: hash }) }]),
    ...(model === null
      ? []
      : [
          {
            text: `Calls of ${readable(model)}`,
            href: callsHref({ model }),
          },
          ...(status === "success"
            ? []
            : [
                {
                  text: `Its other ${status === "failure" ? "failed" : "interrupted"} calls`,
                  href: callsHref({ status, model }),
                },
              ]),
        ]),
    { text: "All calls", href: callsHref({}) },
  ];
}
