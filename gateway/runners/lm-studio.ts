import { z } from "zod";
import type { AskRunner, RunnerReport } from "./runner-state.ts";

const models = z.object({
  data: z.array(
    z.object({ id: z.string(), state: z.enum(["loaded", "not-loaded"]) }),
  ),
});

/**
 * `/api/v0/models` (https://lmstudio.ai/docs/developer/rest/endpoints). LM Studio answers every other path with 200 and an
 * `error`, so only the shape tells.
 */
export async function readLmStudio(
  ask: AskRunner,
): Promise<RunnerReport | null> {
  const read = models.safeParse((await ask("/api/v0/models")).json);
  return read.success && read.data.data.length > 0
    ? {
        kind: "lm_studio",
        models: new Map(
          read.data.data.map(({ id, state }) => [
            id,
            state === "loaded" ? "loaded" : "unloaded",
          ]),
        ),
        only: null,
        slots: null,
      }
    : null;
}
