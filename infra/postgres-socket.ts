import { dockerAt, type StackEngine } from "./engine.ts";
import { containerName } from "./names.ts";

/**
 * Runs statements as superuser over the container's own socket, which requires no password: usable while the password
 * is being changed or unknown. Returns their output, columns separated by `|`. The statements are passed on standard input.
 */
export async function askPostgres(
  engine: StackEngine,
  statements: string,
  withinMs?: number,
): Promise<string> {
  const output = await dockerAt(
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
  return output.trim();
}
