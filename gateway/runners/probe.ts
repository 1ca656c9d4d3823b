import { request } from "undici";
import { parseJson } from "../../core/json.ts";
import { unreachable } from "../providers/failure.ts";
import type { DeploymentAgents } from "../providers/outgoing-agent.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { headersOf, rootOf } from "./address.ts";
import { readLlamaCpp } from "./llama-cpp.ts";
import { readLmStudio } from "./lm-studio.ts";
import { readOllama } from "./ollama.ts";
import type {
  AskRunner,
  ReadRunner,
  RunnerKind,
  RunnerReport,
  RunnerState,
} from "./runner-state.ts";
import { readVllm } from "./vllm.ts";

/** llama.cpp first: it answers some of Ollama's paths too. */
const READERS: readonly (readonly [RunnerKind, ReadRunner])[] = [
  ["llama_cpp", readLlamaCpp],
  ["lm_studio", readLmStudio],
  ["ollama", readOllama],
  ["vllm", readVllm],
];

/** Errors of connections that were never made: no runner is there. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

const ANSWER_TIMEOUT_MS = 5_000;
/** Of an answer of a runner. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Requests to the runner of a deployment, with its key and headers. */
export function askRunner(
  agents: DeploymentAgents,
  deployment: PricedDeployment,
  timeoutMs = ANSWER_TIMEOUT_MS,
  signal: AbortSignal | null = null,
): AskRunner {
  return async (path, body) => {
    const headers = headersOf(deployment);
    const answer = await request(rootOf(deployment) + path, {
      dispatcher: agents.of(deployment),
      method: body === undefined ? "GET" : "POST",
      headers:
        body === undefined
          ? headers
          : { ...headers, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // A kept connection would fail once when the runner has gone.
      reset: true,
      headersTimeout: timeoutMs,
      bodyTimeout: ANSWER_TIMEOUT_MS,
      signal,
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, json: parseJson(text) };
  };
}

/**
 * The state of the runner of a deployment. A runner that accepts connections but is too busy to answer keeps its previous
 * state.
 */
export async function probe(
  agents: DeploymentAgents,
  deployment: PricedDeployment,
  before: RunnerState | null,
): Promise<RunnerState> {
  const ask = askRunner(agents, deployment);
  try {
    const known = before?.report ?? null;
    const report = await recognise(ask, known?.kind ?? null);
    return { report: withKnownSlots(report, known), gone: null };
  } catch (error) {
    const { code } = error as { code?: string };
    return code !== undefined && UNREACHABLE.has(code)
      ? {
          report: before?.report ?? null,
          gone: unreachable(error, deployment.apiBase).message,
        }
      : { report: before?.report ?? null, gone: null };
  }
}

/** While llama.cpp loads its model it does not say how many slots it has: those that it had, so that calls keep their order. */
function withKnownSlots(
  report: RunnerReport | null,
  known: RunnerReport | null,
): RunnerReport | null {
  return report?.only === "loading" && known?.kind === report.kind
    ? { ...report, slots: known.slots }
    : report;
}

/** The kind of the previous probe first. */
async function recognise(
  ask: AskRunner,
  before: RunnerKind | null,
): Promise<RunnerReport | null> {
  const readers = READERS.toSorted(
    ([one], [other]) => Number(other === before) - Number(one === before),
  );
  for (const [, read] of readers) {
    const report = await read(ask);
    if (report !== null) {
      return report;
    }
  }
  return null;
}
