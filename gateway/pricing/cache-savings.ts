import { costOf } from "./cost.ts";
import type { PriceCard } from "./price-card.ts";
import type { Usage } from "../tokens/reported-usage.ts";

/**
 * Dollars that the provider's prompt cache has saved in a call: what its cached input would cost at the full price, less what it
 * costs, less the surcharge for writing to the cache. Negative where more was paid for writing than reading has saved.
 */
export function cacheSavings(card: PriceCard, usage: Usage): number {
  if (usage.cachedInputTokens === 0 && usage.cacheWriteTokens === 0) {
    return 0;
  }
  const uncached: Usage = {
    ...usage,
    cachedInputTokens: 0,
    cachedAudioTokens: 0,
    cachedImageTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    // What was cached of audio and images would have its own price, too.
    audioInputTokens: usage.audioInputTokens + (usage.cachedAudioTokens ?? 0),
    imageInputTokens:
      (usage.imageInputTokens ?? 0) + (usage.cachedImageTokens ?? 0),
  };
  return costOf(card, uncached) - costOf(card, usage);
}
