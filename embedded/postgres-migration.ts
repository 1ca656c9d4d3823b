import { readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { loadBackup } from "../supervisor/backup/load-backup.ts";
import {
  onDatabase,
  rowsOf,
  withDatabase,
} from "../supervisor/backup/database.ts";
import { readPostgresManifest } from "../supervisor/backup/postgres-manifest.ts";
import { takeBackup } from "../supervisor/backup/take-backup.ts";
import { Failure } from "../core/failure.ts";
import { untilHealthy } from "../supervisor/runtimes/process/health.ts";
import { launch } from "../supervisor/runtimes/process/launch.ts";
import { freePort } from "../supervisor/runtimes/process/ports.ts";
import { stopProcess } from "../supervisor/runtimes/process/stop.ts";
import {
  listReleases,
  releaseDirectory,
} from "../supervisor/release/release.ts";
import {
  earlierData,
  migratedName,
  useData,
} from "../supervisor/home/data-in-use.ts";
import type { Home } from "../supervisor/home/home.ts";
import {
  endLeftover,
  inspectCluster,
  majorOfData,
  makeCluster,
  removeUnfinished,
} from "./postgres-cluster.ts";
import {
  hasContent,
  placeOfMajor,
  systemPlaceOf,
  type PostgresPlace,
} from "./postgres-place.ts";
import { ensureRoles } from "./postgres-roles.ts";
import { postgresService } from "./postgres.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";
import { sizeWords } from "../core/size.ts";
import { sum } from "../core/sum.ts";

interface Migration {
  readonly home: Home;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly onNotice: (sentence: string) => void;
}

/** A clean shutdown writes everything that is in memory to the disk. */
const STOP_WITHIN_MS = 600_000;
const SPARE_BYTES = 256 * 1024 * 1024;
const OWNER = "hearth_owner";

/**
 * Postgres cannot read data of another major version. If `place` has such data, and the programs of that version are still
 * installed, this creates a new cluster next to it, copies the database, compares rows and sums, and switches to the new one.
 * The earlier cluster is kept unchanged. Returns the place in use; after a failure that is the earlier one.
 */
export async function migrateCluster(
  place: PostgresPlace,
  migration: Migration,
): Promise<PostgresPlace> {
  const from = await findEarlier(place, migration.home);
  if (from === undefined) {
    return place;
  }
  const { secrets, signal, onNotice } = migration;
  const parent = dirname(place.data);
  inspectCluster(from);
  await removeUnfinished(parent);
  await endLeftover(from.data);
  needRoom(from.data);
  onNotice(
    `Postgres ${from.major} → ${place.major}: copying the database into a new cluster.`,
  );
  const name = migratedName(place.major, Date.now());
  const to = { ...place, data: join(parent, name) };
  const left = await withServer(from, migration, async (fromPort) => {
    await makeCluster(to, secrets.postgresPassword, (making) =>
      withServer(making, migration, async (toPort) => {
        await ensureRoles(toPort, secrets);
        await copyDatabase(fromPort, toPort, migration);
      }),
    );
    return otherDatabases(
      onDatabase(urlAt(fromPort, secrets), "postgres"),
      signal,
    );
  });
  signal.throwIfAborted();
  useData(parent, name);
  onNotice(
    `Postgres ${from.major} → ${place.major}: the new cluster has the same rows and sums and is in use. The earlier one is kept in ${from.data}${left.length === 0 ? "" : ` (with ${left.join(", ")}, which ${left.length === 1 ? "was" : "were"} not copied)`} until \`hearth upgrade --forget-old\`.`,
  );
  return to;
}

/** The unused directories of earlier major versions. */
export function earlierClusters(home: Home): readonly string[] {
  return [home.root, systemPlaceOf(home)].flatMap(earlierData);
}

async function findEarlier(
  place: PostgresPlace,
  home: Home,
): Promise<PostgresPlace | undefined> {
  const major = hasContent(place.data) ? majorOfData(place.data) : undefined;
  return major === undefined || major === place.major
    ? undefined
    : placeOfMajor(home, place, major);
}

function needRoom(data: string): void {
  const needed = sizeOf(join(data, "base")) * 1.5 + SPARE_BYTES;
  const { bavail, bsize } = statfsSync(data);
  if (bavail * bsize < needed) {
    throw new Failure(
      `the disk that holds ${data} has ${sizeWords(bavail * bsize)} left, a second cluster and a backup need about ${sizeWords(needed)}: free some, then run the command again.`,
    );
  }
}

function sizeOf(directory: string): number {
  return sum(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).size),
  );
}

/** Runs a cluster on a private port during `work`, then shuts it down cleanly. */
async function withServer<T>(
  place: PostgresPlace,
  { home, secrets, signal }: Migration,
  work: (port: number) => Promise<T>,
): Promise<T> {
  const port = await freePort();
  const spec = postgresService(place, port, secrets);
  const server = await launch(spec.plan(), join(home.logs, `${spec.name}.log`));
  try {
    const failure = await untilHealthy(spec, server, signal);
    if (failure !== undefined) {
      throw new Failure(
        `Postgres ${place.major} did not start on ${place.data} (${failure}). Run \`hearth logs postgres\` for the reason.`,
      );
    }
    return await work(port);
  } finally {
    await stopProcess(server, spec.stopSignal, STOP_WITHIN_MS);
  }
}

/** The dump is a regular backup and is kept. */
async function copyDatabase(
  fromPort: number,
  toPort: number,
  { home, secrets, signal }: Migration,
): Promise<void> {
  const databaseUrl = urlAt(fromPort, secrets);
  if (!(await hasTables(databaseUrl, signal))) {
    return;
  }
  const directory = join(home.backups, "postgres");
  const parts = { signal, progress: () => {} };
  const { name } = await takeBackup({
    ...parts,
    databaseUrl,
    directory,
    now: Date.now,
    pgDump: false,
  });
  const backup = join(directory, name);
  const { migrations } = readPostgresManifest(backup);
  await loadBackup({
    ...parts,
    backup,
    owner: OWNER,
    databaseUrl: urlAt(toPort, secrets),
    migrations: migrationsWith(migrations, home),
  });
}

function urlAt(port: number, { postgresPassword }: Secrets): string {
  return `postgres://postgres:${postgresPassword}@127.0.0.1:${port}/hearth`;
}

/** An early killed start may have left a cluster without the database, or without its tables. */
async function hasTables(url: string, signal: AbortSignal): Promise<boolean> {
  const databases = await withDatabase(
    onDatabase(url, "postgres"),
    signal,
    (client) =>
      rowsOf(client, "SELECT 1 FROM pg_database WHERE datname = 'hearth'"),
  );
  if (databases.length === 0) {
    return false;
  }
  const tables = await withDatabase(url, signal, (client) =>
    rowsOf(client, "SELECT 1 WHERE to_regclass('migrations') IS NOT NULL"),
  );
  return tables.length > 0;
}

/** After switching back, a release lacks the migrations of the newer one, which is still installed. */
function migrationsWith(names: readonly string[], home: Home): string {
  const release = listReleases(home).find(({ migrations }) =>
    names.every((name) => migrations.includes(name)),
  );
  const project =
    release === undefined ? home.project : releaseDirectory(home, release.id);
  return join(project, "gateway", "database", "migrations");
}

/** Databases of the cluster that are not Hearth's own, such as those that a restore set aside. */
async function otherDatabases(
  url: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const rows = await withDatabase(url, signal, (client) =>
    rowsOf<{ datname: string }>(
      client,
      "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname NOT IN ('postgres', 'hearth') ORDER BY 1",
    ),
  );
  return rows.map(({ datname }) => `database ${datname}`);
}
