import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_RUNNER } from "../config/runner.ts";
import { UpstreamFailure, unreachable } from "../providers/failure.ts";
import type { DeploymentAgents } from "../providers/outgoing-agent.ts";
import { recordOf, textOf } from "../../core/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { ollamaLoad } from "./ollama.ts";
import { askRunner } from "./probe.ts";
import { loadingOf, type Loading, type RunnerReport } from "./runner-state.ts";

interface LoadOptions {
  readonly agents: DeploymentAgents;
  readonly deployment: PricedDeployment;
  /** What the runner reported last; null: it is not recognised. */
  readonly report: () => RunnerReport | null;
  /** Asks it again. */
  readonly refresh: () => Promise<unknown>;
  readonly signal: AbortSignal;
  /** A call follows, which itself makes some runners load its model. */
  readonly forCall: boolean;
}

interface LoadRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const POLL_MS = 500;

/** How long a deployment's model may take to load, in ms. */
export function coldLoadMs({
  runner,
}: Pick<PricedDeployment, "runner">): number {
  return (runner ?? DEFAULT_RUNNER).coldLoadTimeoutMs;
}

/** Has a model loaded, and waits while it is. Throws {@link UpstreamFailure}, or the signal's reason. */
export async function loadModel(options: LoadOptions): Promise<void> {
  const { deployment, report, refresh, signal } = options;
  const until = performance.now() + coldLoadMs(deployment);
  const now = () => {
    const known = report();
    return known === null ? null : loadingOf(known, deployment.model);
  };
  const request = loadRequest(options, now());
  if (request !== null) {
    await send(request, options);
    await refresh();
  }
  while (now() === "loading") {
    if (performance.now() >= until) {
      throw notLoaded(deployment);
    }
    await sleep(POLL_MS, undefined, { signal });
    await refresh();
  }
}

/** null: none is needed, the runner has none, or it loads the model when it is called. */
function loadRequest(
  { deployment, report, forCall }: LoadOptions,
  loading: Loading | null,
): LoadRequest | null {
  const { model, mode, defaults } = deployment;
  const { keep_alive: keepAlive } = defaults;
  const known = report();
  const isOllama = known?.kind === "ollama";
  // What is loaded already may have been loaded for a shorter time.
  const isNeeded = forCall
    ? loading === "unloaded"
    : loading !== "loading" &&
      (loading !== "loaded" || (isOllama && keepAlive !== undefined));
  if (!isNeeded || known === null) {
    return null;
  }
  if (isOllama) {
    return ollamaLoad(model, mode === "embedding", keepAlive);
  }
  const isRouter = known.kind === "llama_cpp" && known.only === null;
  if (forCall || !(isRouter || known.kind === "lm_studio")) {
    return null;
  }
  return {
    path: isRouter ? "/models/load" : "/api/v1/models/load",
    body: { model },
  };
}

async function send(
  { path, body }: LoadRequest,
  { agents, deployment, signal }: LoadOptions,
): Promise<void> {
  const ask = askRunner(agents, deployment, coldLoadMs(deployment), signal);
  const { status, json } = await ask(path, body).catch((error: unknown) => {
    signal.throwIfAborted();
    throw (error as { code?: string }).code === "UND_ERR_HEADERS_TIMEOUT"
      ? notLoaded(deployment)
      : unreachable(error, deployment.apiBase);
  });
  // LM Studio reports some errors with status 200.
  const { error } = recordOf(json);
  if (status >= 400 || error !== undefined) {
    const why = textOf(error) || textOf(recordOf(error)["message"]);
    throw new UpstreamFailure(
      status >= 400 ? status : 502,
      `${deployment.apiBase} could not load ${deployment.model}: ${why || `it answered ${status}`}`,
    );
  }
}

function notLoaded(deployment: PricedDeployment): UpstreamFailure {
  return new UpstreamFailure(
    408,
    `${deployment.apiBase} did not load ${deployment.model} within ${coldLoadMs(deployment) / 1_000} s: try again, or set a longer cold_load_timeout`,
  );
}
