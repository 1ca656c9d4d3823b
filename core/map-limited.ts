/**
 * Applies asynchronous work to items, at most `limit` at a time; the results are in the order of the items. Rejects with the
 * first failure, after which no other work starts.
 */
export async function mapLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const left = eachOf(items);
  const takeEach = async () => {
    for (const [index, item] of left) {
      results[index] = await work(item);
    }
  };
  await Promise.all(
    Array.from({ length: Math.min(limit, items.length) }, takeEach),
  );
  return results;
}

/** Unlike the iterator of an array, this one ends for all loops that share it when one of them fails. */
function* eachOf<T>(items: readonly T[]): Generator<[number, T]> {
  yield* items.entries();
}
