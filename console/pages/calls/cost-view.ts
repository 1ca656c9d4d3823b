import { grouped, money } from "../../../core/words.ts";
import type { CallInFull } from "../../../supervisor/gateway/calls.ts";

/** Parts of a bill in words; others are shown with spaces. */
const PARTS: Readonly<Record<string, string>> = {
  input_tokens: "Input",
  cached_input_tokens: "Input read from the provider's cache",
  cached_audio_tokens: "Audio read from the provider's cache",
  cached_image_tokens: "Images read from the provider's cache",
  cache_write_tokens: "Input written to the provider's cache",
  cache_write_1h_tokens: "Input written to the cache for an hour",
  audio_input_tokens: "Audio input",
  image_input_tokens: "Image input",
  video_input_tokens: "Video input",
  output_tokens: "Output",
  reasoning_tokens: "Reasoning",
  audio_output_tokens: "Audio output",
  image_output_tokens: "Image output",
  video_output_tokens: "Video output",
  citation_tokens: "Citations",
  request: "Request",
  images: "Images",
  web_searches: "Web searches",
  file_searches: "File searches",
  pages: "Pages",
  annotated_pages: "Annotated pages",
  audio_seconds: "Seconds of audio",
  characters: "Characters",
  search_units: "Searches",
  text_messages: "Text messages",
  reported_cost: "As reported by the provider",
  failed_attempts: "Failed attempts (estimated)",
};

/** Why a call cost what it cost: its lines, whose amounts are the total to the last digit. */
export function viewCost(call: CallInFull) {
  const { lines, rounding, total } = call.cost;
  return {
    lines: (lines ?? []).map(({ part, used, price, factor, amount }) => ({
      part: partOf(part),
      used: used === 1 && !isTokens(part) ? "1" : grouped(used, digitsOf(used)),
      price: `$ ${price}${isTokens(part) ? " per million" : " each"}${factor === null ? "" : ` × ${factor}`}`,
      amount: `$ ${amount}`,
    })),
    rounding: rounding === "0" ? null : `$ ${rounding}`,
    total: `$ ${total}`,
    notes: notesOf(call),
  };
}

function partOf(part: string): string {
  return PARTS[part] ?? part.replaceAll("_", " ");
}

function isTokens(part: string): boolean {
  return part.endsWith("tokens");
}

/** Seconds of audio are not whole. */
function digitsOf(used: number): number {
  return Number.isInteger(used) ? 0 : 2;
}

function notesOf(call: CallInFull): readonly string[] {
  const { lines } = call.cost;
  const { estimated, unpriced_parts: unpriced = [] } = call.metadata;
  return [
    ...(lines === null ? [reasonWithoutLines(call)] : []),
    ...(lines?.some(({ factor }) => factor !== null) === true
      ? ["× is the factor of the service tier that the provider used."]
      : []),
    ...(estimated === true
      ? [
          "Estimated in part: a provider charged without reporting what was used.",
        ]
      : []),
    ...(unpriced.length === 0
      ? []
      : [
          `Without a price, and not included: ${unpriced.map((part) => part.replaceAll("_", " ")).join(", ")}.`,
        ]),
    ...(call.saved > 0
      ? [
          call.cache_hit === "True"
            ? `The cache saved ${money(call.saved)}, the cost of the answer that it has.`
            : `The provider's cache saved ${money(call.saved)}.`,
        ]
      : []),
    ...(call.saved < 0
      ? [`Writing to the provider's cache cost ${money(-call.saved)} more.`]
      : []),
  ];
}

function reasonWithoutLines(call: CallInFull): string {
  if (call.payer !== null) {
    return "Set by hand, or imported.";
  }
  if (call.status === "interrupted") {
    return "Billed at its counted input, because the gateway stopped before the answer ended.";
  }
  if (call.spend > 0) {
    return "Its parts are not recorded: the call was imported, or made with an earlier version.";
  }
  if (call.cache_hit === "True") {
    return "Answers from the cache cost nothing.";
  }
  if (call.unpriced) {
    return "No price is known for this model: its calls count as free. Set its prices in the configuration.";
  }
  return call.status === "failure"
    ? "The call failed before a provider charged anything."
    : "This deployment costs nothing.";
}
