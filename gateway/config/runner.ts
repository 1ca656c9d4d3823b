import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import type { ProviderParams } from "./schema.ts";
import type { Deployment, RunnerSettings } from "./types.ts";

/** Of a runner without settings of its own. */
export const DEFAULT_RUNNER: RunnerSettings = {
  slots: null,
  queueLimit: 100,
  queueTimeoutMs: null,
  coldLoadTimeoutMs: 600_000,
  preload: { atStart: false, crons: [] },
};

const RUNNER_SETTINGS = [
  "slots",
  "queue_limit",
  "queue_timeout",
  "cold_load_timeout",
  "preload",
] as const;

/** The settings of a local runner; null: none is set, or (with a warning) the deployment cannot be one. */
export function readRunner(
  reading: Reading,
  paramsPath: Path,
  params: ProviderParams,
  family: Deployment["provider"],
): RunnerSettings | null {
  const given = RUNNER_SETTINGS.filter((name) => params[name] !== undefined);
  if (given.length === 0) {
    return null;
  }
  if (family !== "openai" && family !== "ollama") {
    reading.warnings.push(
      ...given.map((name) =>
        problemAt(
          reading,
          [...paramsPath, name],
          "has no effect: it is for runners of your own (Ollama, llama.cpp, LM Studio, vLLM)",
        ),
      ),
    );
    return null;
  }
  return {
    slots: params.slots ?? null,
    queueLimit: params.queue_limit ?? DEFAULT_RUNNER.queueLimit,
    queueTimeoutMs: params.queue_timeout ?? DEFAULT_RUNNER.queueTimeoutMs,
    coldLoadTimeoutMs:
      params.cold_load_timeout ?? DEFAULT_RUNNER.coldLoadTimeoutMs,
    preload: params.preload ?? DEFAULT_RUNNER.preload,
  };
}
