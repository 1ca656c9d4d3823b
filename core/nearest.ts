/** The known name most similar to a mistyped one; undefined when none is similar enough to have been meant. */
export function nearest(
  name: string,
  known: Iterable<string>,
): string | undefined {
  const allowed = Math.max(2, Math.floor(name.length / 3));
  const written = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = allowed + 1;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    const limit = Math.min(bestDistance, name.length, candidate.length);
    // No distance is smaller than this: a name of megabytes is not compared.
    if (Math.abs(written.length - other.length) >= limit) {
      continue;
    }
    const distance = editDistance(written, other);
    if (distance < limit) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` (did you mean "gateway"?)`; empty without a similar name. */
export function meant(name: string, known: Iterable<string>): string {
  const similar = nearest(name, known);
  return similar === undefined ? "" : ` (did you mean "${similar}"?)`;
}

/** `check "gatway" not found (did you mean "gateway"?).`; without a similar name, with the known ones. */
export function notFound(
  noun: string,
  name: string,
  known: readonly string[],
): string {
  const listed = known.length === 0 ? "" : `; available: ${known.join(", ")}`;
  return `${noun} "${name}" not found${meant(name, known) || listed}.`;
}

/** Optimal string alignment: insertions, deletions, substitutions and swapped neighbours count one each. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let shortest = Math.min(
        (row[j - 1] ?? 0) + 1,
        (previous[j] ?? 0) + 1,
        (previous[j - 1] ?? 0) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        shortest = Math.min(shortest, (beforePrevious[j - 2] ?? 0) + 1);
      }
      row.push(shortest);
    }
    beforePrevious = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
