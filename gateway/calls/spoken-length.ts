import { pricesOutput } from "../pricing/cost.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import {
  MAX_MEASURED_BYTES,
  PCM_BYTES_PER_SECOND,
} from "../tokens/spoken-audio.ts";
import { audioTokensOut, inputUsage } from "../tokens/usage.ts";
import { secondsOf } from "./audio-length.ts";
import type { Call } from "./call.ts";

/** Audio of an answer. */
interface Spoken {
  /** Of all of it. */
  readonly bytes: number;
  /** Of one that is not longer than {@link MAX_MEASURED_BYTES}: all of it. */
  readonly kept: readonly Buffer[];
  readonly contentType: string;
}

/** Whether the length of the audio decides about the cost: its tokens have a price, and characters have none. */
export function isBilledByLength(
  call: Call,
  deployment: PricedDeployment,
): boolean {
  const { priceCard } = deployment;
  return (
    priceCard !== null &&
    inputUsage(call, deployment).billedBy === undefined &&
    pricesOutput(priceCard)
  );
}

/** Where the audio does not tell its length, that of the reservation; never longer than that, which a wrong header could say. */
export async function spokenSeconds(
  call: Call,
  { bytes, kept, contentType }: Spoken,
): Promise<number> {
  const longest = call.outputTokens / audioTokensOut(1);
  const seconds =
    call.body["response_format"] === "pcm"
      ? bytes / PCM_BYTES_PER_SECOND
      : bytes > MAX_MEASURED_BYTES
        ? longest
        : await secondsOf({
            bytes: Buffer.concat(kept),
            name: "",
            contentType,
          });
  return Math.min(seconds ?? longest, longest);
}

/** The facts of a stream of speech that broke off before it reported its usage, with the length of what it contained. */
export async function withSpokenSeconds(
  call: Call,
  deployment: PricedDeployment,
  facts: AnswerFacts,
): Promise<AnswerFacts> {
  const { usage, spoken } = facts;
  if (
    usage !== null ||
    spoken === undefined ||
    !isBilledByLength(call, deployment)
  ) {
    return facts;
  }
  const kept = spoken.base64.map((piece) => Buffer.from(piece, "base64"));
  // By its content: the events do not name its type.
  const audio = { bytes: spoken.bytes, kept, contentType: "" };
  return { ...facts, spokenSeconds: await spokenSeconds(call, audio) };
}
