import { dockerAt, type StackEngine } from "./engine.ts";
import { containerName } from "./names.ts";

/**
 * Runs statements as superuser over the container's own socket, where no password is asked for: the way in while the password
 * is being changed or is not known. Gives what they say, columns separated by `|`. The statements go in by standard input.
 */
export async function askPostgres(
  engine: StackEngine,
  statements: string,
  withinMs?: number,
): Promise<string> {
  const said = await dockerAt(
    engine,
    [
      "exec",
      "--interactive",
      "--user",
      "postgres",
      containerName(engine, "postgres"),
      "psql",
      "--username=postgres",
      "--dbname=hearth",
      "--set=ON_ERROR_STOP=1",
      "--no-psqlrc",
      "--quiet",
      "--tuples-only",
      "--no-align",
    ],
    statements,
    withinMs,
  );
  return said.trim();
}
