import type { Client } from "pg";
import { databaseOf, onDatabase, quoted, withDatabase } from "./database.ts";

/**
 * Makes an empty database `<database><suffix>` beside the one of the address, gives it to `work`, and drops it after, whatever
 * happened. One that a killed run left is dropped first. The role may make databases.
 */
export async function withScratchDatabase<T>(
  databaseUrl: string,
  suffix: string,
  signal: AbortSignal,
  work: (scratchUrl: string) => Promise<T>,
): Promise<T> {
  const scratch = `${databaseOf(databaseUrl)}${suffix}`;
  await withDatabase(databaseUrl, signal, async (client) => {
    await dropDatabase(client, scratch);
    await client.query(`CREATE DATABASE ${quoted(scratch)} TEMPLATE template0`);
  });
  try {
    return await work(onDatabase(databaseUrl, scratch));
  } finally {
    // Also after an abort: what was made is taken away again.
    await withDatabase(databaseUrl, AbortSignal.timeout(60_000), (client) =>
      dropDatabase(client, scratch),
    );
  }
}

export async function dropDatabase(
  client: Client,
  name: string,
): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${quoted(name)} WITH (FORCE)`);
}
