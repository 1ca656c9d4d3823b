import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import type { Couch } from "./couch.ts";

/** How long a vault is reported that was reopened, or could not be read or written. */
const REPORTED_MS = HOUR_MS;

const incidents = z
  .array(z.object({ database: z.string(), at: z.iso.datetime() }))
  .default([]);
const systemSchema = z.object({
  hung_databases: z.array(z.string()).default([]),
  reopened_databases: incidents,
  failing_databases: incidents,
});

export interface TroubledVaults {
  /** Those that do not respond (true), or were reopened for that reason within the last hour (false). */
  readonly hung: ReadonlyMap<string, boolean>;
  /** Those that could not be read or written within the last hour. */
  readonly failing: readonly string[];
}

/** The troubled databases of the embedded store; CouchDB reports none. */
export async function troubledVaults(
  couch: Couch,
  now: number,
): Promise<TroubledVaults> {
  const answer = systemSchema.safeParse(
    await couch.find("/_node/_local/_system"),
  );
  const system = answer.success ? answer.data : systemSchema.parse({});
  const recent = (incidents: typeof system.reopened_databases) =>
    incidents
      .filter(({ at }) => Date.parse(at) > now - REPORTED_MS)
      .map(({ database }) => database);
  return {
    hung: new Map([
      ...recent(system.reopened_databases).map(
        (each) => [each, false] as const,
      ),
      ...system.hung_databases.map((each) => [each, true] as const),
    ]),
    failing: recent(system.failing_databases),
  };
}
