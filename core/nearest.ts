/** The known word nearest to a mistyped one, if any is near enough to have been meant. */
export function nearest(
  word: string,
  known: readonly string[],
): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: distance(word, candidate) }))
    .toSorted((a, b) => a.distance - b.distance)[0];
  if (ranked === undefined) {
    return undefined;
  }
  const limit = Math.max(2, Math.floor(ranked.candidate.length / 2));
  return ranked.distance <= limit ? ranked.candidate : undefined;
}

/** Levenshtein: how many letters must be added, removed or changed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(
        Math.min(
          (next[j - 1] ?? 0) + 1,
          (row[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + change,
        ),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
