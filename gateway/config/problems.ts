/** One mistake (or, among warnings, one remark) in the configuration. */
export interface ConfigProblem {
  /** As shown to the operator; null: an environment variable, named by `path`. */
  readonly file: string | null;
  /** From 1; null where no line can be named. */
  readonly line: number | null;
  /** `model_list[2].provider_params.rpm`, spelled as the file spells it; empty for the whole file. */
  readonly path: string;
  /** One sentence: what is wrong and what is allowed. Never a secret's value. */
  readonly message: string;
}

/** `config/gateway.yaml:12: router_settings.allowed_fails: must be …`, one line. */
export function formatProblem(problem: ConfigProblem): string {
  const file = problem.file ?? "environment";
  const place = problem.line === null ? file : `${file}:${problem.line}`;
  return problem.path === ""
    ? `${place}: ${problem.message}`
    : `${place}: ${problem.path}: ${problem.message}`;
}

/** The known name that a mistyped one most likely meant, null when none is near. */
export function nearestName(
  name: string,
  known: Iterable<string>,
): string | null {
  const allowed = Math.max(1, Math.floor(name.length / 3));
  let best: string | null = null;
  let bestDistance = allowed + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Optimal string alignment: insertions, deletions, substitutions and swapped neighbours count one each. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(
        (row[j - 1] ?? 0) + 1,
        (previous[j] ?? 0) + 1,
        (previous[j - 1] ?? 0) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforePrevious[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    beforePrevious = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
