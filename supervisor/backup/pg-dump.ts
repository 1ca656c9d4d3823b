import { openSync, closeSync, fsyncSync } from "node:fs";
import { join } from "node:path";
import { execute } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";
import { describeFile } from "./backup-files.ts";
import type { BackupFile } from "./manifest.ts";

const FILE_NAME = "hearth.dump";

/** Dumps with pg_dump, for use with pg_restore. Throws a Failure if pg_dump is missing or too old. */
export async function dumpDatabase(
  databaseUrl: string,
  directory: string,
  signal: AbortSignal,
): Promise<BackupFile> {
  const path = join(directory, FILE_NAME);
  const { args, env } = buildDump(databaseUrl, path);
  const { ok, startError, reason, stderr } = await execute("pg_dump", args, {
    env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", ...env },
    stdout: "ignore",
    signal,
  });
  if (startError === "ENOENT") {
    throw new Failure(
      "pg_dump is not installed on this machine: install the client programs of Postgres, or omit --pg-dump (a backup needs no other program).",
    );
  }
  if (!ok) {
    const detail = stderr.trim().split("\n").join(" ").slice(-2000) || reason;
    throw new Failure(
      `pg_dump failed (${detail}): fix that, or omit --pg-dump (a backup needs no other program).`,
    );
  }
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
  return describeFile(path);
}

/** The password is passed in the environment: arguments are visible to all users. */
function buildDump(
  databaseUrl: string,
  file: string,
): {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  const url = new URL(databaseUrl);
  return {
    args: ["--format=custom", "--no-password", `--file=${file}`],
    env: {
      PGHOST: url.hostname,
      PGPORT: url.port || "5432",
      PGUSER: decodeURIComponent(url.username),
      PGPASSWORD: decodeURIComponent(url.password),
      PGDATABASE: decodeURIComponent(url.pathname.slice(1)),
      ...tlsOf(url),
    },
  };
}

/** Parameters of the address as environment variables of pg_dump. */
function tlsOf({ searchParams }: URL): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (["sslmode", "sslrootcert"] as const).flatMap((name) => {
      const value = searchParams.get(name);
      return value === null ? [] : [[`PG${name.toUpperCase()}`, value]];
    }),
  );
}
