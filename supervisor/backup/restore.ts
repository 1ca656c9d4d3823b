import { join } from "node:path";
import { z } from "zod";
import { askHttp } from "../checks/http-get.ts";
import { Failure, textOf } from "../../core/failure.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { verifyFiles } from "./backup-files.ts";
import { databaseOf } from "./database.ts";
import { forgetLimits, type RedisPlace } from "./forget-limits.ts";
import { loadBackup } from "./load-backup.ts";
import { backupName } from "./manifest.ts";
import type { Peer } from "./peer.ts";
import { readPostgresManifest } from "./postgres-manifest.ts";
import { contentOf, replaceDatabase } from "./replace-database.ts";
import { chooseBackup } from "./which-backup.ts";

export interface RestorePlaces {
  readonly directory: string;
  readonly migrations: string;
  /** Of the superuser; undefined where the operator must give it. */
  readonly databaseUrl: string | undefined;
  /** Undefined where none can be restarted from here. */
  readonly restartGateway: (() => Promise<unknown>) | undefined;
  readonly redis: RedisPlace | undefined;
  readonly peer: Peer | undefined;
}

/** No address: a backup holds everything, so where it goes is decided on the machine that has it, never by a request. */
const restoreOptions = z.strictObject({
  /** Of a backup; the newest when left out. */
  backup: z.string("backup must be the name of a backup.").optional(),
  /** Keep a database that is not empty under another name, instead of refusing. */
  setAside: z.boolean("setAside must be true or false.").default(false),
});

export const RESTART_WITHIN_MS = 240_000;

/**
 * Puts a backup in place of an empty database and brings the gateways back to work with it. Throws a Failure, with everything
 * as it was, when the database holds anything, or the backup is not whole.
 */
export async function restore(
  places: RestorePlaces,
  context: JobContext,
): Promise<JobOutcome> {
  const { signal, progress } = context;
  const options = restoreOptions.safeParse(context.options);
  if (!options.success) {
    throw new Failure(
      options.error.issues.map((issue) =>
        issue.code === "unrecognized_keys"
          ? `a restore has no option ${issue.keys.join(", ")}: it takes backup and setAside.`
          : issue.message,
      ),
    );
  }
  const { setAside } = options.data;
  const name = chooseBackup(places.directory, options.data.backup);
  const backup = join(places.directory, name);
  const { databaseUrl } = places;
  if (databaseUrl === undefined) {
    throw new Failure(
      "a restore needs Postgres's superuser, whose password this supervisor does not know: run `hearth restore` on its host with RESTORE_DATABASE_URL (or RESTORE_DATABASE_URL_FILE, a file with it), such as postgres://postgres:…@postgres:5432/hearth.",
    );
  }
  readPostgresManifest(backup);
  await verifyFiles(backup, signal, (text, done) => progress(text, done * 0.1));
  const held = await contentOf(databaseUrl, signal);
  if (held !== undefined && !setAside) {
    throw new Failure(
      `the database is not empty (${held}), and a restore never overwrites: with --set-aside it is kept under another name and the backup takes its place.`,
    );
  }
  const keepAs =
    held === undefined
      ? undefined
      : `${databaseOf(databaseUrl)}_before_${backupName(context.now()).replaceAll("-", "").toLowerCase()}`;
  const dropped = await replaceDatabase(
    databaseUrl,
    signal,
    keepAs,
    async (newUrl) => {
      const { migrations } = places;
      await loadBackup({
        backup,
        databaseUrl: newUrl,
        migrations,
        signal,
        owner: "hearth_owner",
        progress: (text, done) => progress(text, 0.1 + (done ?? 0) * 0.8),
      });
    },
  );
  progress("restarting the gateways", 0.92);
  const left = await bringBackGateways(places);
  return {
    status: "done",
    summary: [
      `${name} is restored.`,
      ...(dropped.length === 0
        ? []
        : [
            `A restore that was killed had left ${dropped.join(" and ")}: dropped.`,
          ]),
      ...(keepAs === undefined
        ? []
        : [`What was there before is kept as database ${keepAs}.`]),
      ...left,
    ].join(" "),
    details: { backup: name, keptAs: keepAs ?? null },
  };
}

/**
 * Gateways hold totals in memory, and Redis holds theirs: both are of the database before. Fresh gateways read anew, and
 * Redis forgets its limits last, when nobody is left who could write old ones. Answers what a person must still do.
 */
async function bringBackGateways(
  places: RestorePlaces,
): Promise<readonly string[]> {
  const left: string[] = [];
  if (places.restartGateway === undefined) {
    left.push("Restart the gateways: they still know the database before.");
  } else {
    await places
      .restartGateway()
      .catch((error: unknown) =>
        left.push(
          `The gateway did not come back (${textOf(error)}): see \`hearth logs gateway\`.`,
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
        `Redis still counts the spend of the database before (${textOf(error)}): restart Redis, or delete its keys hearth:limits:*.`,
      ),
    );
  }
  return left;
}

const PEER_SENTENCE =
  "The gateway of the other host could not be restarted from here: restart it there.";
