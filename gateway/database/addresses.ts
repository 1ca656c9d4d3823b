import pg from "pg";
import { query, type Pool } from "./pool.ts";

/** The gateway cannot work with an address of the database; the message is for the operator. */
class AddressRejected extends Error {}

/** The variable of the address that leads to Postgres itself, and the only one where there is no connection pooler. */
export type SessionVariable = "DATABASE_URL" | "DATABASE_DIRECT_URL";

const ADVICE =
  "set DATABASE_DIRECT_URL to the address of Postgres itself, without the pooler";
/** A server connection that happened to be free again is noticed in one of them. */
const ROUNDS = 5;

/**
 * Throws {@link AddressRejected} if the connection has no session of its own: advisory locks and LISTEN would be lost without an
 * error. A process of the server that changes between two statements, or that another open connection has too, proves a
 * connection pooler in transaction mode. `connectAnother` is called only if some pooler is there.
 */
export async function requireSession(
  client: pg.Client,
  variable: SessionVariable,
  connectAnother: () => Promise<pg.Client>,
): Promise<void> {
  const process = await processOf(client);
  // A pooler gives its clients numbers of its own, by which they cancel statements.
  if (process === announcedProcess(client)) {
    return;
  }
  const another = await connectAnother();
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const now = await processOf(client);
      if (now !== process || now === (await processOf(another))) {
        throw new AddressRejected(
          `${variable} leads to a connection pooler in transaction mode, which loses locks and notifications: ${ADVICE}.`,
        );
      }
    }
  } finally {
    await another.end().catch(() => undefined);
  }
}

async function processOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ process: number }>(
    "SELECT pg_backend_pid() AS process",
  );
  return rows[0]?.process;
}

/** What the server said when the connection was established; the driver's types lack it. */
function announcedProcess(client: pg.Client): number | null | undefined {
  return (client as pg.Client & { readonly processID?: number | null })
    .processID;
}

/** The same only for one database of one running server. */
const IDENTITY =
  "SELECT oid::text || ' ' || datname || ' ' || extract(epoch FROM pg_postmaster_start_time()) AS identity FROM pg_database WHERE datname = current_database()";

/** Throws {@link AddressRejected} if the two addresses lead to different databases or servers. */
export async function requireSameDatabase(
  client: pg.Client,
  pool: Pool,
): Promise<void> {
  const [direct] = await query<{ identity: string }>(client, IDENTITY);
  const [pooled] = await query<{ identity: string }>(pool, IDENTITY);
  if (direct?.identity !== pooled?.identity) {
    throw new AddressRejected(
      "DATABASE_DIRECT_URL leads to another database or server than DATABASE_URL: give both the address of the same database, one through the connection pooler and one without it.",
    );
  }
}

const PROTOCOL_VIOLATION = "08P01";

/** What the operator has to correct in an address, if that is the reason for an error; else null. */
export function addressProblem(
  error: unknown,
  variable: SessionVariable,
): string | null {
  if (error instanceof AddressRejected) {
    return error.message;
  }
  if (
    error instanceof pg.DatabaseError &&
    error.code === PROTOCOL_VIOLATION &&
    error.message.includes("startup parameter")
  ) {
    return `${variable} leads to a connection pooler (${error.message}): ${ADVICE}.`;
  }
  return error instanceof Error && error.cause !== undefined
    ? addressProblem(error.cause, variable)
    : null;
}
