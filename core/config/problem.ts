import { meant } from "../nearest.ts";

/** One mistake in the configuration; in a list of warnings, something that has no effect. */
export interface ConfigProblem {
  /** As displayed to the operator; null: an environment variable, named by `path`. */
  readonly file: string | null;
  /** From 1; null where no line can be named. */
  readonly line: number | null;
  /** `model_list[2].provider_params.rpm`, spelled as in the file; empty for the whole file. */
  readonly path: string;
  /** What is wrong and what is allowed. Never contains a secret's value. */
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

/** By layer (`files`, lowest first) and line; environment variables last. */
export function sortProblems(
  problems: readonly ConfigProblem[],
  files: readonly string[],
): readonly ConfigProblem[] {
  const rank = (problem: ConfigProblem): number =>
    problem.file === null ? files.length : files.indexOf(problem.file);
  return problems.toSorted(
    (a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0),
  );
}

/** More alternatives than this are not listed. */
const MAX_LISTED = 12;

/** `unknown setting "everry" (did you mean "every"?)`; without a similar name, a short list of the known ones. */
export function unknownName(
  noun: string,
  name: string,
  known: readonly string[],
): string {
  const listed =
    known.length === 0 || known.length > MAX_LISTED
      ? ""
      : ` (known: ${known.join(", ")})`;
  return `unknown ${noun} "${name}"${meant(name, known) || listed}`;
}
