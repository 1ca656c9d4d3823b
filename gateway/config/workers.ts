import { problemAt, type Reading } from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { numberVariable } from "./numbers.ts";
import { MAX_WORKERS, type GeneralSettings } from "./schema.ts";

const PATH = ["general_settings", "workers"];
/** LiteLLM's name. */
const VARIABLE = "NUM_WORKERS";

/** How many processes serve the port: of the file, else of the variable, else one. Several share their limits in Redis. */
export function readWorkers(
  reading: Reading,
  read: ReadVariable,
  { workers: written }: Partial<GeneralSettings>,
  hasRedis: boolean,
): number {
  const given = numberVariable(reading, read, VARIABLE, {
    min: 1,
    max: MAX_WORKERS,
  });
  const place = (message: string) =>
    written === undefined
      ? { file: null, line: null, path: VARIABLE, message }
      : problemAt(reading, PATH, message);
  if (written !== undefined && given !== null && written !== given) {
    reading.problems.push(
      place(`differs from ${VARIABLE}: remove it here, or unset ${VARIABLE}`),
    );
  }
  const workers = written ?? given ?? 1;
  if (workers > 1 && !hasRedis) {
    reading.problems.push(
      place(
        "needs Redis, in which workers share limits: set REDIS_HOST (or REDIS_URL or REDIS_SENTINELS), or set it to 1",
      ),
    );
  }
  return workers;
}
