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
