import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import type { Couch } from "./couch.ts";

/** How long a reopened vault is reported. */
const REPORTED_MS = HOUR_MS;

const systemSchema = z.object({
  hung_databases: z.array(z.string()).default([]),
  reopened_databases: z
    .array(z.object({ database: z.string(), at: z.iso.datetime() }))
    .default([]),
});

/** Databases of the embedded store that do not respond (true), or were reopened for that reason within the last hour (false). CouchDB reports none. */
export async function hungVaults(
  couch: Couch,
  now: number,
): Promise<ReadonlyMap<string, boolean>> {
  const answer = systemSchema.safeParse(
    await couch.find("/_node/_local/_system"),
  );
  if (!answer.success) {
    return new Map();
  }
  const { hung_databases: hung, reopened_databases: reopened } = answer.data;
  return new Map([
    ...reopened
      .filter(({ at }) => Date.parse(at) > now - REPORTED_MS)
      .map(({ database }) => [database, false] as const),
    ...hung.map((database) => [database, true] as const),
  ]);
}
