import { join } from "node:path";
import { z } from "zod";
import { askHttp } from "../checks/http-get.ts";
import { Failure, textOf } from "../../core/failure.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { verifyFiles } from "./backup-files.ts";
import type { RedisPlace } from "../../core/redis/place.ts";
import { forgetLimits } from "./forget-limits.ts";
import { loadBackup } from "./load-backup.ts";
import type { Peer } from "./peer.ts";
import { readPostgresManifest } from "./postgres-manifest.ts";
import {
  contentOf,
  databasesSetAside,
  isRestoredFrom,
  recordOrigin,
  replaceDatabase,
  setAsideName,
} from "./replace-database.ts";
import { chooseBackup } from "./which-backup.ts";

export interface RestorePlaces {
  readonly directory: string;
  readonly migrations: string;
  /** Of the superuser; undefined if the operator must provide it. */
  readonly databaseUrl: string | undefined;
  /** Undefined if no gateway can be restarted from here. */
  readonly restartGateway: (() => Promise<unknown>) | undefined;
  readonly redis: RedisPlace | undefined;
  readonly peer: Peer | undefined;
}

/** Without an address: a backup contains everything, so its destination is never set by a request. */
const restoreOptions = z.strictObject({
  /** Name of a backup; defaults to the newest. */
  backup: z.string("backup must be the name of a backup.").optional(),
  /** Keeps a non-empty database under another name instead of failing. */
  setAside: z.boolean("setAside must be true or false.").default(false),
});

export const RESTART_WITHIN_MS = 240_000;

/**
 * Restores a backup into an empty database and restarts the gateways. Throws a Failure without changes if the backup is
 * incomplete, or if the database is not empty, unless it was restored from this backup: an interrupted restore is completed.
 */
export async function restore(
  places: RestorePlaces,
  context: JobContext,
): Promise<JobOutcome> {
  const { signal, progress, now } = context;
  const { migrations } = places;
  const { name, setAside, databaseUrl } = checkRestore(
    places,
    context.options,
    now(),
  );
  const backup = join(places.directory, name);
  readPostgresManifest(backup);
  await verifyFiles(backup, signal, (text, done) => progress(text, done * 0.1));
  const held = await contentOf(databaseUrl, signal);
  if (held !== undefined && !setAside) {
    if (await isRestoredFrom(databaseUrl, name, signal)) {
      const kept = await databasesSetAside(databaseUrl, signal);
      return completeRestored(places, name, kept, progress);
    }
    throw new Failure(
      `the database is not empty (${held}); a restore never overwrites data. With --set-aside it is kept under another name.`,
    );
  }
  const { dropped, keptAs } = await replaceDatabase(
    databaseUrl,
    signal,
    setAsideName(databaseUrl, now()),
    async (newUrl) => {
      await loadBackup({
        backup,
        databaseUrl: newUrl,
        migrations,
        signal,
        owner: "hearth_owner",
        progress: (text, done) => progress(text, 0.1 + (done ?? 0) * 0.8),
      });
      await recordOrigin(newUrl, name, signal);
    },
  );
  progress("restarting the gateways", 0.92);
  const left = await restartGateways(places);
  return {
    status: "done",
    summary: [
      `${name} is restored.`,
      ...(dropped === undefined
        ? []
        : [`Dropped ${dropped}, left by an interrupted restore.`]),
      ...(keptAs === undefined
        ? []
        : [
            `${held === undefined ? "Data that was written during the restore" : "The previous data"} is kept as database ${keptAs}.`,
          ]),
      ...left,
    ].join(" "),
    details: { backup: name, keptAs: keptAs ?? null },
  };
}

/** A supervisor that was killed may not have restarted the gateways. */
async function completeRestored(
  places: RestorePlaces,
  name: string,
  kept: readonly string[],
  progress: JobContext["progress"],
): Promise<JobOutcome> {
  progress("restarting the gateways", 0.92);
  const left = await restartGateways(places);
  return {
    status: "skipped",
    summary: [
      `The database was already restored from ${name}; with --set-aside it is restored again.`,
      ...(kept.length === 0
        ? []
        : [`Previous data is kept as database ${kept.join(", ")}.`]),
      ...left,
    ].join(" "),
    details: { backup: name, keptAs: null },
  };
}

/** What a restore with these options restores, and where. Throws a Failure for what no restore can fulfil. */
export function checkRestore(
  { directory, databaseUrl }: Pick<RestorePlaces, "directory" | "databaseUrl">,
  options: unknown,
  now: number,
): {
  readonly name: string;
  readonly setAside: boolean;
  readonly databaseUrl: string;
} {
  const { setAside, backup } = parseOptions(options);
  const name = chooseBackup("postgres", directory, backup, now);
  if (databaseUrl === undefined) {
    throw new Failure(
      "a restore needs the password of Postgres's superuser, which this supervisor does not have: run `hearth restore` on its host with RESTORE_DATABASE_URL (or RESTORE_DATABASE_URL_FILE, the path of a file), such as postgres://postgres:…@postgres:5432/hearth.",
    );
  }
  return { name, setAside, databaseUrl };
}

function parseOptions(options: unknown): z.output<typeof restoreOptions> {
  const parsed = restoreOptions.safeParse(options);
  if (parsed.success) {
    return parsed.data;
  }
  throw new Failure(
    parsed.error.issues.map((issue) =>
      issue.code === "unrecognized_keys"
        ? `unknown option ${issue.keys.join(", ")}: a restore takes backup and setAside.`
        : issue.message,
    ),
  );
}

/**
 * Totals in the memory of gateways and in Redis belong to the previous database. Restarted gateways read the new one; the
 * limits in Redis are deleted last, when no gateway can write old ones. Returns what remains to be done by a person.
 */
async function restartGateways(
  places: RestorePlaces,
): Promise<readonly string[]> {
  const left: string[] = [];
  if (places.restartGateway === undefined) {
    left.push(
      "Restart the gateways: they still use totals of the previous database.",
    );
  } else {
    await places
      .restartGateway()
      .catch((error: unknown) =>
        left.push(
          `The gateway did not restart (${textOf(error)}): run \`hearth logs gateway\`.`,
        ),
      );
  }
  const { peer, redis } = places;
  if (peer !== undefined) {
    await askHttp(`${peer.url}/api/restart/gateway`, {
      method: "POST",
      headers: peer.headers,
      signal: AbortSignal.timeout(RESTART_WITHIN_MS),
    }).then(
      ({ status }) => {
        if (status >= 300) {
          left.push(PEER_SENTENCE);
        }
      },
      () => left.push(PEER_SENTENCE),
    );
  }
  if (redis !== undefined) {
    await forgetLimits(redis).catch((error: unknown) =>
      left.push(
        `Redis still has the spend of the previous database (${textOf(error)}): restart Redis, or delete its keys hearth:limits:*.`,
      ),
    );
  }
  return left;
}

const PEER_SENTENCE =
  "The gateway of the other host could not be restarted: restart it there.";
