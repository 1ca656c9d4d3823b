import { z } from "zod";
import type { AskRunner, Loading, RunnerReport } from "./runner-state.ts";

/** The answer to every request while the model is being loaded, with status 503. */
const loadingError = z.object({
  error: z.object({
    code: z.literal(503),
    message: z.literal("Loading model"),
    type: z.literal("unavailable_error"),
  }),
});

const serverProps = z.object({
  total_slots: z.int().min(1),
  is_sleeping: z.boolean().optional(),
});

/** A server without a model of its own, which starts one for each model that is called. */
const routerProps = z.object({ role: z.literal("router") });

const routerModels = z.object({
  data: z.array(
    z.object({ id: z.string(), status: z.object({ value: z.string() }) }),
  ),
});

const NO_MODELS: ReadonlyMap<string, Loading> = new Map();

/** `/health` and `/props` of llama-server (https://github.com/ggml-org/llama.cpp/tree/master/tools/server). */
export async function readLlamaCpp(
  ask: AskRunner,
): Promise<RunnerReport | null> {
  const { json } = await ask("/props");
  if (loadingError.safeParse(json).success) {
    return report("loading", null);
  }
  const server = serverProps.safeParse(json);
  if (server.success) {
    const { is_sleeping: isSleeping, total_slots: slots } = server.data;
    return report(isSleeping === true ? "unloaded" : "loaded", slots);
  }
  return routerProps.safeParse(json).success ? readRouter(ask) : null;
}

function report(only: Loading, slots: number | null): RunnerReport {
  return { kind: "llama_cpp", models: NO_MODELS, only, slots };
}

async function readRouter(ask: AskRunner): Promise<RunnerReport> {
  const read = routerModels.safeParse((await ask("/models")).json);
  const states = (read.data?.data ?? []).map(
    ({ id, status }): [string, Loading] => [
      id,
      status.value === "loaded" || status.value === "loading"
        ? status.value
        : "unloaded",
    ],
  );
  return {
    kind: "llama_cpp",
    models: new Map(states),
    only: null,
    slots: null,
  };
}
