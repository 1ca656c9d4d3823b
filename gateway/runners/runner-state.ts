export type RunnerKind = "ollama" | "lm_studio" | "llama_cpp" | "vllm";

export type Loading = "loaded" | "loading" | "unloaded";

/** What a runner says about itself. */
export interface RunnerReport {
  readonly kind: RunnerKind;
  /** By the runner's name of a model. */
  readonly models: ReadonlyMap<string, Loading>;
  /** Of its only model, which it uses whatever model is called; null: it has several. */
  readonly only: Loading | null;
  /** Calls that it carries out at once; null: it does not say. */
  readonly slots: number | null;
}

/** The result of the latest probe. */
export interface RunnerState {
  /** null: it has not been recognised as a runner. */
  readonly report: RunnerReport | null;
  /** Why it cannot be reached, in one sentence; null: it can. */
  readonly gone: string | null;
}

/** The answer of a runner; `json` is undefined for anything else. */
interface RunnerAnswer {
  readonly status: number;
  readonly json: unknown;
}

/** Sends a request to a path of a runner. Throws where it cannot be reached or does not answer in time. */
export type AskRunner = (
  path: string,
  body?: Readonly<Record<string, unknown>>,
) => Promise<RunnerAnswer>;

/** Reads the state of one kind of runner; null: the server is of another kind. */
export type ReadRunner = (ask: AskRunner) => Promise<RunnerReport | null>;

/** Of a model; null: unknown. */
export function loadingOf(report: RunnerReport, model: string): Loading | null {
  const name = report.kind === "ollama" ? withTag(model) : model;
  return report.only ?? report.models.get(name) ?? null;
}

/** Ollama's `llama3.2` is `llama3.2:latest`. */
export function withTag(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).includes(":")
    ? model
    : `${model}:latest`;
}
