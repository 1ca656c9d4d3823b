import type { Client } from "pg";
import { MINUTE_MS } from "../../core/duration.ts";
import { databaseOf, onDatabase, quoted, withDatabase } from "./database.ts";

/**
 * Creates an empty database `<database><suffix>` on the server of the address for `work`, and always drops it afterwards. One
 * left by a killed run is dropped first. The role must be allowed to create databases.
 */
export async function withScratchDatabase<T>(
  databaseUrl: string,
  suffix: string,
  signal: AbortSignal,
  work: (scratchUrl: string) => Promise<T>,
): Promise<T> {
  const scratch = scratchName(databaseUrl, suffix);
  await withDatabase(databaseUrl, signal, async (client) => {
    await dropDatabase(client, scratch);
    await client.query(`CREATE DATABASE ${quoted(scratch)} TEMPLATE template0`);
  });
  try {
    return await work(onDatabase(databaseUrl, scratch));
  } finally {
    // Also after an abort.
    await dropScratch(databaseUrl, suffix, AbortSignal.timeout(MINUTE_MS));
  }
}

/** Drops the scratch database of a suffix, if there is one. */
export async function dropScratch(
  databaseUrl: string,
  suffix: string,
  signal: AbortSignal,
): Promise<void> {
  await withDatabase(databaseUrl, signal, (client) =>
    dropDatabase(client, scratchName(databaseUrl, suffix)),
  );
}

function scratchName(databaseUrl: string, suffix: string): string {
  return `${databaseOf(databaseUrl)}${suffix}`;
}

export async function dropDatabase(
  client: Client,
  name: string,
): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${quoted(name)} WITH (FORCE)`);
}
