import { z } from "zod";
import type { AskRunner, RunnerReport } from "./runner-state.ts";

const models = z.object({
  data: z
    .array(z.looseObject({ id: z.string(), owned_by: z.string() }))
    .min(1)
    .refine((list) => list.every(({ owned_by: owner }) => owner === "vllm")),
});

/** `/v1/models` lists what it was started with (https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html). */
export async function readVllm(ask: AskRunner): Promise<RunnerReport | null> {
  const read = models.safeParse((await ask("/v1/models")).json);
  return read.success
    ? {
        kind: "vllm",
        models: new Map(read.data.data.map(({ id }) => [id, "loaded"])),
        only: null,
        slots: null,
      }
    : null;
}
