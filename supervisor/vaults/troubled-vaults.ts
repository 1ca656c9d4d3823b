import { z } from "zod";
import type { Couch } from "./couch.ts";

/** Of the last hour. */
const incidents = z.array(z.object({ database: z.string() })).default([]);
const systemSchema = z.object({
  hung_databases: z.array(z.string()).default([]),
  reopened_databases: incidents,
  failing_databases: z
    .array(
      z.object({
        database: z.string(),
        // Stores of earlier releases name none.
        reason: z
          .enum(["damaged_document", "damaged_file", "disk"])
          .default("disk"),
      }),
    )
    .default([]),
});

export type FailingVault = z.output<
  typeof systemSchema
>["failing_databases"][number];

interface TroubledVaults {
  /** Those that do not respond (true), or were reopened for that reason within the last hour (false). */
  readonly hung: ReadonlyMap<string, boolean>;
  /** Those that could not be read or written within the last hour. */
  readonly failing: readonly FailingVault[];
}

/** The troubled databases of the embedded store; CouchDB reports none. */
export async function troubledVaults(couch: Couch): Promise<TroubledVaults> {
  const answer = systemSchema.safeParse(
    await couch.find("/_node/_local/_system"),
  );
  const system = answer.success ? answer.data : systemSchema.parse({});
  return {
    hung: new Map([
      ...system.reopened_databases.map(
        ({ database }) => [database, false] as const,
      ),
      ...system.hung_databases.map((each) => [each, true] as const),
    ]),
    failing: system.failing_databases,
  };
}
