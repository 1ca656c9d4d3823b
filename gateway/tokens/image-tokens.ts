/**
 * Of the largest image of `gpt-image-1`, in its highest quality. A model that needs more is known by its recent answers.
 * https://platform.openai.com/docs/guides/image-generation#cost-and-latency
 */
export const MAX_TOKENS_PER_IMAGE = 6_240;

/** The same in the other qualities; `auto` may choose any. */
const TOKENS_OF_QUALITY: ReadonlyMap<unknown, number> = new Map([
  ["low", 408],
  ["medium", 1_584],
]);

/** Output tokens of an image, at most. */
export function imageTokensOf(quality: unknown): number {
  return TOKENS_OF_QUALITY.get(quality) ?? MAX_TOKENS_PER_IMAGE;
}

/** Of an image that is edited: four tiles on its base, and in high fidelity those that preserve it. */
const LOW_FIDELITY_TOKENS = 65 + 4 * 129;
const HIGH_FIDELITY_TOKENS = LOW_FIDELITY_TOKENS + 6_240;
/** Models that read images in low fidelity, unless a call asks for more. */
const OF_LOW_FIDELITY = /(^|\/)gpt-image-1(-mini)?$/;

/**
 * Input tokens of an image that a model edits, at most.
 * https://platform.openai.com/docs/guides/image-generation#cost-and-latency
 */
export function editedImageTokens(model: string, fidelity: unknown): number {
  return OF_LOW_FIDELITY.test(model) && fidelity !== "high"
    ? LOW_FIDELITY_TOKENS
    : HIGH_FIDELITY_TOKENS;
}
