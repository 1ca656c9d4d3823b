import { randomBytes } from "node:crypto";
import { HOUR_MS } from "../../core/duration.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import { dockerAt, type StackEngine } from "../engine.ts";
import { containerName, networkName, volumeName } from "../names.ts";
import { askPostgres } from "../postgres-socket.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import { DATA_ROOT } from "./postgres-major.ts";

/** The server of the new cluster during the copy: it listens on its own socket only. */
const nextName = (engine: StackEngine): string =>
  `${containerName(engine, "postgres")}-next`;
const RELOADED_WITHIN_MS = 10_000;
const STARTS_WITHIN_MS = 180_000;
/** A large database takes long. */
const COPIED_WITHIN_MS = 6 * HOUR_MS;
const STOP_SECONDS = 600;

/** Size of a copy. */
interface CopyTotals {
  readonly tables: number;
  readonly rows: number;
}

/** Makes every transaction read-only, which the gateways treat as an outage. */
export async function makeReadOnly(engine: StackEngine): Promise<void> {
  await askPostgres(
    engine,
    `ALTER SYSTEM SET default_transaction_read_only = on;
SELECT pg_reload_conf();`,
  );
  const deadline = performance.now() + RELOADED_WITHIN_MS;
  while (!(await isReadOnly(engine))) {
    if (performance.now() > deadline) {
      throw new Error("Postgres did not become read-only");
    }
  }
  // Transactions that started before could still write.
  await askPostgres(
    engine,
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();",
  );
}

export async function makeWritable(engine: StackEngine): Promise<void> {
  await askPostgres(
    engine,
    `ALTER SYSTEM RESET default_transaction_read_only;
SELECT pg_reload_conf();`,
  );
}

export async function isReadOnly(engine: StackEngine): Promise<boolean> {
  const output = await askPostgres(
    engine,
    "SELECT current_setting('default_transaction_read_only');",
    ANSWERS_WITHIN_MS,
  );
  return output === "on";
}

/**
 * Copies all databases and roles of the running, read-only server into a new cluster of the image's version, and compares every
 * table's row count and checksum. The new cluster is then in the volume, without a server on it. Throws on any failure, with an
 * unfinished cluster left in the volume.
 */
export async function copyCluster(
  engine: StackEngine,
  config: HearthConfig,
  { image, major }: { readonly image: string; readonly major: string },
): Promise<CopyTotals> {
  await dockerAt(
    engine,
    buildNextArgs(engine, image, major, config.memory.postgres),
    "",
    STARTS_WITHIN_MS,
  );
  const inNext = (script: string, withinMs: number) =>
    dockerAt(
      engine,
      ["exec", "--interactive", nextName(engine), "bash", "-c", script],
      `${config.postgresPassword}\n`,
      withinMs,
    );
  await inNext(UNTIL_STARTED, STARTS_WITHIN_MS);
  const sums = await inNext(COPY_SCRIPT, COPIED_WITHIN_MS);
  // A clean shutdown writes everything to disk.
  await dockerAt(
    engine,
    ["stop", "--time", String(STOP_SECONDS), nextName(engine)],
    "",
    (STOP_SECONDS + 60) * 1000,
  );
  await dockerAt(engine, ["rm", nextName(engine)]);
  // What was written since is not in the copy.
  if (!(await isReadOnly(engine))) {
    throw new Error(
      "Postgres became writable during the copy, as by a second run of the command",
    );
  }
  await inPostgres(
    engine,
    // An existing one is from an earlier copy, which is outdated by now.
    `cd ${DATA_ROOT} && { [ ! -e ${major} ] || mv ${major} ${major}.$(date +%s); } && mv ${making(major)} ${major} && sync .`,
  );
  const rows = sums
    .split("\n")
    .flatMap((line) => /^table .*\|(\d+)\|\d+$/.exec(line)?.[1] ?? []);
  return {
    tables: rows.length,
    rows: rows.reduce((sum, count) => sum + Number(count), 0),
  };
}

/** Removes the leftovers of an unfinished copy. */
export async function removeUnfinished(engine: StackEngine): Promise<void> {
  await dockerAt(engine, ["rm", "--force", nextName(engine)]);
  await inPostgres(engine, `rm -rf ${DATA_ROOT}/*.making`);
}

/** Runs a shell script in the running server's container. */
export function inPostgres(
  engine: StackEngine,
  script: string,
  withinMs?: number,
): Promise<string> {
  return dockerAt(
    engine,
    [
      "exec",
      "--user",
      "root",
      containerName(engine, "postgres"),
      "bash",
      "-c",
      script,
    ],
    "",
    withinMs,
  );
}

const making = (major: string): string => `${major}.making`;

function buildNextArgs(
  engine: StackEngine,
  image: string,
  major: string,
  memoryMiB: number,
): readonly string[] {
  const memory = `${memoryMiB}m`;
  return [
    "run",
    "--detach",
    "--name",
    nextName(engine),
    "--network",
    networkName(engine),
    "--memory",
    memory,
    "--memory-swap",
    memory,
    "--shm-size",
    "256m",
    "--security-opt",
    "no-new-privileges",
    "--cap-drop",
    "ALL",
    ...["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"].flatMap(
      (capability) => ["--cap-add", capability],
    ),
    "--volume",
    `${volumeName(engine, "postgres")}:${DATA_ROOT}`,
    "--env",
    `PGDATA=${DATA_ROOT}/${making(major)}/docker`,
    // Required by the image; the copy replaces it with the stack's own.
    "--env",
    `POSTGRES_PASSWORD=${randomBytes(24).toString("base64url")}`,
    image,
    "postgres",
    "-c",
    "listen_addresses=",
  ];
}

/** The image's entrypoint first starts a temporary server for initdb; the final one is the container's process 1. */
const UNTIL_STARTED = `until [ "$(cat /proc/1/comm)" = postgres ] && pg_isready --quiet; do sleep 0.2; done`;

/**
 * Runs in the container of the new cluster, whose pg_dump reads servers of earlier versions. The old
 * server's password is the first line of the input. Prints the checksums, which are equal in both.
 */
const COPY_SCRIPT = `set -euo pipefail
IFS= read -r PGPASSWORD
export PGPASSWORD PGSSLMODE=require PGUSER=postgres
ask() { psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 "$@"; }
databases=$(ask --host=postgres --dbname=postgres --command="SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate AND datname <> 'postgres' ORDER BY 1")
sums() {
  local database
  for database in $databases; do
    ask "$@" --dbname="$database" <<'SQL'
SET TIME ZONE 'UTC';
SELECT format('SELECT %L, count(*), coalesce(sum((''x'' || left(md5(hearth_row::text), 15))::bit(60)::bigint), 0) FROM %I.%I AS hearth_row',
    'table ' || current_database() || '.' || nspname || '.' || relname, nspname, relname)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE relkind = 'r' AND nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY nspname, relname \\gexec
SELECT 'sequence ' || current_database() || '.' || schemaname || '.' || sequencename, last_value FROM pg_sequences ORDER BY schemaname, sequencename;
SQL
  done
}
# The superuser is there already; its password comes with the rest.
pg_dumpall --host=postgres --globals-only | sed '/^CREATE ROLE postgres;$/d' | ask --dbname=postgres
for database in $databases; do
  pg_dump --host=postgres --create "$database" | ask --dbname=postgres
  ask --dbname="$database" --command=ANALYZE
done >/dev/null
before=$(sums --host=postgres)
after=$(sums)
diff <(echo "$before") <(echo "$after") >&2 || { echo "rows or sums differ" >&2; exit 1; }
echo "$after"
`;
