import pg from "pg";

/** Gives `use` a connection of its own, which ends with it. */
export async function withClient<T>(
  login: string | pg.ClientConfig,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(login);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
