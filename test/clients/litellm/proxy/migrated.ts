import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withClient } from "../../../servers/with-client.ts";

/**
 * Applies the migrations that LiteLLM publishes as `litellm-proxy-extras`, verbatim and in their order, as `prisma migrate deploy` does.
 * The package may be older than LiteLLM asks for, where a newer one is not published: then the proxy logs that a table is missing.
 * `python` is that of a virtual environment with the package.
 */
export async function migrateAsLitellm(
  databaseUrl: string,
  python: string,
): Promise<void> {
  const lib = join(python, "../../lib");
  const [version = ""] = readdirSync(lib);
  const folder = join(
    lib,
    version,
    "site-packages/litellm_proxy_extras/migrations",
  );
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
  await withClient(databaseUrl, async (client) => {
    for (const name of names) {
      // Each file is one script: those that build indexes concurrently hold one statement each.
      await client.query(
        readFileSync(join(folder, name, "migration.sql"), "utf8"),
      );
    }
  });
}
