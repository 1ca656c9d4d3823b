import pg from "pg";

/** Whether Postgres accepts a login with this password. */
export async function logsIn(
  login: Pick<pg.ClientConfig, "host" | "port" | "user" | "password" | "ssl">,
): Promise<boolean> {
  const client = new pg.Client({ ...login, database: "hearth" });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}
