import { z } from "zod";
import { withTag, type AskRunner, type RunnerReport } from "./runner-state.ts";

const models = z.object({
  models: z.array(z.object({ name: z.string(), model: z.string().optional() })),
});

/** `/api/ps` lists the loaded models, `/api/tags` all of them (https://docs.ollama.com/api/ps). */
export async function readOllama(ask: AskRunner): Promise<RunnerReport | null> {
  const loaded = models.safeParse((await ask("/api/ps")).json);
  if (!loaded.success) {
    return null;
  }
  const installed = models.safeParse((await ask("/api/tags")).json);
  const states = new Map<string, "loaded" | "unloaded">();
  for (const { name } of installed.data?.models ?? []) {
    states.set(withTag(name), "unloaded");
  }
  for (const { name } of loaded.data.models) {
    states.set(withTag(name), "loaded");
  }
  return { kind: "ollama", models: states, only: null, slots: null };
}

/**
 * The request that loads a model. Its OpenAI-compatible routes ignore `keep_alive` and keep what this request has set
 * (https://github.com/ollama/ollama/issues/11458); models for embeddings have no `/api/generate`.
 */
export function ollamaLoad(
  model: string,
  isEmbedding: boolean,
  keepAlive: unknown,
): { readonly path: string; readonly body: Readonly<Record<string, unknown>> } {
  const lasting =
    keepAlive === undefined || keepAlive === null
      ? {}
      : { keep_alive: keepAlive };
  return isEmbedding
    ? { path: "/api/embed", body: { model, input: "", ...lasting } }
    : { path: "/api/generate", body: { model, stream: false, ...lasting } };
}
