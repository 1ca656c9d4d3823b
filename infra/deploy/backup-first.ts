import { HOUR_MS } from "../../core/duration.ts";
import { lastLineOf } from "../../core/execute.ts";
import { textOf } from "../../core/failure.ts";
import type { HostName } from "../config/config-schema.ts";
import {
  dockerAt,
  DockerError,
  typedDocker,
  type StackEngine,
} from "../engine.ts";
import { askPostgres } from "../postgres-socket.ts";
import { containerName, volumeName } from "../names.ts";
import { hostFlag, type Flags } from "./flags.ts";
import {
  ANSWERS_WITHIN_MS,
  orLeaveOut,
  probeHost,
  requireHosts,
} from "./host-view.ts";
import { postgresRuns, requireSameMajor } from "./postgres-major.ts";
import { rejectUnusableSettings } from "./operators-files.ts";
import { readSettings, type Session } from "./session.ts";
import {
  backupNotice,
  migrationNotice,
  unappliedMigrations,
} from "./unapplied-migrations.ts";

/** A large database takes long. */
export const BACKUP_WITHIN_MS = 2 * HOUR_MS;

/** Jobs of the data host's supervisor, which has the databases' passwords and verifies backups. */
const JOBS = ["postgres-backup", "notes-backup"] as const;

/** Before each verb that may start another version of the gateway. `maySkip`: the verb can leave out a host. */
export async function checkAndBackUp(
  session: Session,
  flags: Flags,
  { maySkip = false } = {},
): Promise<void> {
  const without = hostFlag(flags.without);
  await requireHosts(session.engines, {
    without,
    ...(maySkip ? { otherwise: orLeaveOut } : {}),
  });
  await rejectUnusableSettings(await readSettings(session));
  await requireSameMajor(session, without);
  if (flags["no-backup"] !== true) {
    await backUpFirst(session, without);
  }
}

/**
 * Backs up Postgres and the notes if the gateways of this checkout will migrate the database. `without` is the excluded
 * host. Throws one sentence if that fails; nothing was changed then.
 */
export async function backUpFirst(
  { hosts, engines, say }: Session,
  without: HostName | undefined,
): Promise<void> {
  // Configuration mistakes are reported by the program. Without Postgres' host no gateway can migrate.
  if (hosts === null || hosts.placement.postgres === without) {
    return;
  }
  const host = hosts.placement.postgres;
  const engine = engines[host];
  const name = `host ${host.toUpperCase()}`;
  const view = await probeHost(engine);
  if (view === null || !postgresRuns(engine, view)) {
    if (view?.volumes.includes(volumeName(engine, "postgres")) === true) {
      say(
        `Postgres is not running on ${name}, so its data is not backed up before this run.`,
      );
    }
    return;
  }
  const missing = await missingMigrations(engine);
  if (missing.length === 0) {
    return;
  }
  say(backupNotice(missing));
  await backUp(engine);
}

/** Says in a preview which migrations an `up` would run. If they cannot be read, `up` says why. */
export async function announceMigrations(
  { hosts, engines, say }: Session,
  without: HostName | undefined,
): Promise<void> {
  if (hosts === null || hosts.placement.postgres === without) {
    return;
  }
  const engine = engines[hosts.placement.postgres];
  const view = await probeHost(engine);
  if (view === null || !postgresRuns(engine, view)) {
    return;
  }
  const missing = await missingMigrations(engine).catch(() => []);
  if (missing.length > 0) {
    say(migrationNotice(missing));
  }
}

/** Backs up Postgres and the notes now. Throws one sentence; nothing was changed then. */
export async function backUp(engine: StackEngine): Promise<void> {
  for (const job of JOBS) {
    await runJob(engine, job);
  }
}

/** For psql: the names of the applied migrations; none for a database without tables. */
const APPLIED_NAMES = `SELECT to_regclass('public.migrations') IS NOT NULL AS known \\gset
\\if :known
SELECT name FROM public.migrations;
\\endif
`;

/** Migrations of this checkout that are not applied yet; none for a database without tables. */
async function missingMigrations(
  engine: StackEngine,
): Promise<readonly string[]> {
  const output = await askPostgres(
    engine,
    APPLIED_NAMES,
    ANSWERS_WITHIN_MS,
  ).catch((error: unknown) => {
    throw new Error(
      `the applied migrations cannot be read from Postgres (${lastLine(error)}); nothing was changed: check \`${typedDocker(engine, `logs ${containerName(engine, "postgres")}`)}\`, or skip the backup with --no-backup.`,
    );
  });
  return unappliedMigrations(output.split(/\s+/).filter((word) => word !== ""));
}

async function runJob(engine: StackEngine, job: string): Promise<void> {
  const command = `hearth jobs run ${job}`;
  const supervisor = containerName(engine, "supervisor");
  try {
    await dockerAt(
      engine,
      ["exec", supervisor, ...command.split(" ")],
      "",
      BACKUP_WITHIN_MS,
    );
  } catch (error) {
    throw new Error(
      `the backup failed (${job}: ${lastLine(error)}), so nothing was changed: run \`${typedDocker(engine, `exec ${supervisor} ${command}`)}\` to see why; once it works, run the same command again, or skip the backup with --no-backup.`,
      { cause: error },
    );
  }
}

/** The last line of a docker command's output, or of any other error's message. */
export function lastLine(error: unknown): string {
  if (error instanceof DockerError) {
    const { stdout, reason } = error.execution;
    return lastLineOf(stdout) || reason;
  }
  return lastLineOf(textOf(error));
}
