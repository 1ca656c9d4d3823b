import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import { ensureCluster } from "./postgres-cluster.ts";
import { asUser, type PostgresPlace } from "./postgres-place.ts";
import { ensureRoles, passwordHint } from "./postgres-roles.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";

/** The embedded Postgres, on loopback only. */
export function postgresService(
  place: PostgresPlace,
  port: number,
  secrets: Secrets,
): ServiceSpec {
  return {
    name: "postgres",
    address: `postgres://127.0.0.1:${port}/hearth`,
    port,
    needs: [],
    uses: [],
    prepare: async () => {
      await ensureCluster(place, secrets.postgresPassword);
      await needFreePort(port, "postgres", "HEARTH_POSTGRES_PORT");
    },
    plan: () => ({
      file: join(place.binaries, "bin", "postgres"),
      args: buildPostgresArgs(place.data, port),
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
      ...asUser(place.user),
    }),
    probe: async () =>
      saysReady(place.data) && (await answers(place.data, port, secrets)),
    afterUp: () => ensureRoles(port, secrets),
    // After a crash it first replays its log, which may take minutes.
    startWithinMs: 300_000,
    // SIGINT is Postgres's fast shutdown: SIGTERM would wait for clients to disconnect.
    stopSignal: "SIGINT",
    stopWithinMs: 30_000,
    haltSignal: "SIGQUIT",
    explain: explainPostgres,
  };
}

/** Settings for a small machine. Statements are never logged, as some contain secrets. */
export function buildPostgresArgs(
  data: string,
  port: number,
): readonly string[] {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    max_connections: "50",
    superuser_reserved_connections: "3",
    shared_buffers: "64MB",
    max_wal_size: "512MB",
    jit: "off",
    password_encryption: "scram-sha-256",
    logging_collector: "off",
    log_destination: "stderr",
    log_line_prefix: "%m [%p] %q%u@%d ",
    log_timezone: "UTC",
    timezone: "UTC",
    log_min_messages: "warning",
    log_min_error_statement: "panic",
    log_statement: "none",
    log_min_duration_statement: "-1",
    log_parameter_max_length_on_error: "0",
    log_checkpoints: "off",
  };
  return [
    "-D",
    data,
    ...Object.entries(settings).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]),
  ];
}

/** Line 8 of postmaster.pid: earlier connections would only fill the log with errors. */
function saysReady(data: string): boolean {
  try {
    const status = readFileSync(join(data, "postmaster.pid"), "utf8");
    return status.split("\n")[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

async function answers(
  data: string,
  port: number,
  { postgresPassword: password }: Secrets,
): Promise<boolean> {
  const client = new Client({
    host: "127.0.0.1",
    port,
    database: "postgres",
    user: "postgres",
    password,
    connectionTimeoutMillis: 2000,
    query_timeout: 2000,
    application_name: "hearth probe",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch (error) {
    throw passwordHint(error, data);
  } finally {
    await client.end().catch(() => {});
  }
}

function explainPostgres(log: readonly string[]): readonly string[] {
  const fatal = log
    .map((line) => /(?:FATAL|PANIC):\s+(.*)$/.exec(line)?.[1])
    .findLast((text) => text !== undefined);
  if (fatal === undefined) {
    return [];
  }
  return [
    fatal.includes("No space left on device")
      ? `Postgres did not start: no space is left on its disk (${fatal}). Free some, then run the command again.`
      : `Postgres did not start (${fatal}). Run \`hearth logs postgres\` for details.`,
  ];
}
