/** Sums of the calls of some days. Money in dollars. */
export interface Sums {
  readonly spend: number;
  /** Cost that answers from the cache have saved, and the caches of providers for prompts; negative where writing to these cost more. */
  readonly saved: number;
  readonly requests: number;
  readonly failed: number;
  readonly interrupted: number;
  readonly cacheHits: number;
  readonly unpriced: number;
  readonly promptTokens: number;
  /** Of them: read from caches of providers. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

export const noSums: Sums = {
  spend: 0,
  saved: 0,
  requests: 0,
  failed: 0,
  interrupted: 0,
  cacheHits: 0,
  unpriced: 0,
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
};

/** The columns that `sumsIn` reads. */
export const SUM_COLUMNS = `
  sum(spend)::text AS spend, sum(saved)::text AS saved, sum(requests)::text AS requests, sum(failed)::text AS failed,
  sum(interrupted)::text AS interrupted, sum(cache_hits)::text AS cache_hits, sum(unpriced)::text AS unpriced,
  sum(prompt_tokens)::text AS prompt_tokens, sum(completion_tokens)::text AS completion_tokens, sum(cached_tokens)::text AS cached_tokens`;

export function sumsIn(row: Readonly<Record<string, unknown>>): Sums {
  const number = (name: string) => Number(row[name] ?? 0);
  return {
    spend: number("spend"),
    saved: number("saved"),
    requests: number("requests"),
    failed: number("failed"),
    interrupted: number("interrupted"),
    cacheHits: number("cache_hits"),
    unpriced: number("unpriced"),
    promptTokens: number("prompt_tokens"),
    cachedTokens: number("cached_tokens"),
    completionTokens: number("completion_tokens"),
  };
}

export function addUp(all: Iterable<Sums>): Sums {
  const sum = { ...noSums };
  for (const each of all) {
    sum.spend += each.spend;
    sum.saved += each.saved;
    sum.requests += each.requests;
    sum.failed += each.failed;
    sum.interrupted += each.interrupted;
    sum.cacheHits += each.cacheHits;
    sum.unpriced += each.unpriced;
    sum.promptTokens += each.promptTokens;
    sum.cachedTokens += each.cachedTokens;
    sum.completionTokens += each.completionTokens;
  }
  return { ...sum, spend: exact(sum.spend), saved: exact(sum.saved) };
}

/** Rounds dollars to 1e-10, a hundredth of the cheapest token, to remove errors of binary addition. */
export function exact(dollars: number): number {
  return Number(dollars.toFixed(10));
}
