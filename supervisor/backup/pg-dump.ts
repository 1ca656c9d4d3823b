import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, openSync, closeSync, fsyncSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Failure, codeOf, textOf } from "../../core/failure.ts";
import type { BackupFile } from "./manifest.ts";

const FILE_NAME = "hearth.dump";

/** A dump by Postgres's own tool, for who wants to read it with pg_restore. Throws a Failure where the tool is missing or too old. */
export async function dumpDatabase(
  databaseUrl: string,
  directory: string,
  signal: AbortSignal,
): Promise<BackupFile> {
  const path = join(directory, FILE_NAME);
  const { args, env } = buildDump(databaseUrl, path);
  const child = spawn("pg_dump", args, {
    env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", ...env },
    stdio: ["ignore", "ignore", "pipe"],
    signal,
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).catch((error: unknown) => {
    throw new Failure(
      codeOf(error) === "ENOENT"
        ? "there is no pg_dump on this machine: install Postgres's client programs, or leave --pg-dump out (a backup needs no other program)."
        : `pg_dump could not run: ${textOf(error)}.`,
    );
  });
  if (code !== 0) {
    throw new Failure(
      `pg_dump gave up (${said.trim().split("\n").join(" ")}): mend that, or leave --pg-dump out (a backup needs no other program).`,
    );
  }
  return describe(path);
}

/** The password goes by the environment: arguments are for all to see. */
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

/** The tool names in its environment what an address has as parameters. */
function tlsOf({ searchParams }: URL): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (["sslmode", "sslrootcert"] as const).flatMap((name) => {
      const value = searchParams.get(name);
      return value === null ? [] : [[`PG${name.toUpperCase()}`, value]];
    }),
  );
}

async function describe(path: string): Promise<BackupFile> {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
  const hash = createHash("sha256");
  let bytes = 0;
  const content = createReadStream(path);
  content.on("data", ({ length }) => (bytes += length));
  await pipeline(content, hash);
  return { name: FILE_NAME, bytes, sha256: hash.digest("hex") };
}
