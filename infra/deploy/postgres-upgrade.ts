import { imageReferenceOf } from "../config/config.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import { dockerAt, outputLines, type StackEngine } from "../engine.ts";
import { volumeName } from "../names.ts";
import { startPostgres } from "./adopt.ts";
import { backUp, lastLine } from "./backup-first.ts";
import { bringUp } from "./bring-up.ts";
import { ANSWERS_WITHIN_MS, probeHost } from "./host-view.ts";
import {
  copyCluster,
  inPostgres,
  isReadOnly,
  makeReadOnly,
  makeWritable,
  removeUnfinished,
} from "./postgres-copy.ts";
import {
  DATA_ROOT,
  majorsOf,
  postgresRuns,
  PULLED_WITHIN_MS,
  runningMajor,
} from "./postgres-major.ts";
import { readSettings, type Session } from "./session.ts";
import { setSetting } from "./settings.ts";

/** Long enough for a slow disk. */
const REMOVED_WITHIN_MS = 600_000;
const COMMAND = "npm run deploy -- upgrade postgres";

interface Versions {
  readonly engine: StackEngine;
  readonly config: HearthConfig;
  readonly image: string;
  /** Major versions: of the running server, undefined for none, and of the image. */
  readonly current: string | undefined;
  readonly wanted: string;
}

/**
 * Upgrades the stack to the image's major version of Postgres: backs up, copies everything into a new cluster next to
 * the one in use while the gateways serve known keys, compares, and switches. The earlier cluster is kept. A run killed
 * before the switch leaves the earlier cluster in use; after the switch, the same command completes it.
 * Throws one sentence.
 */
export async function upgradePostgres(
  session: Session,
  { backup }: { readonly backup: boolean },
): Promise<void> {
  const { say } = session;
  const versions = await readVersions(session);
  const { engine, config, current, wanted } = versions;
  const copies =
    current !== undefined && current !== wanted && !(await isCopied(versions));
  if (current === wanted || copies) {
    await clear(engine);
  }
  if (copies) {
    await requireDiskSpace(engine);
  }
  if (copies && backup) {
    say("Backing up Postgres and the notes …");
    await backUp(engine);
    // The backup may be on the same disk.
    await requireDiskSpace(engine);
  }
  const started = performance.now();
  if (copies) {
    await copyOrClear(session, versions, current);
  } else {
    await useVersion(session, versions);
  }
  await startPostgres(session, config);
  say(
    `Postgres ${wanted} is in use${copies ? `; writes were paused for ${Math.ceil((performance.now() - started) / 1000)} s` : ""}. Earlier clusters are kept until \`${COMMAND} --forget-old\`.`,
  );
  // The copy left the earlier cluster read-only.
  await inPostgres(
    engine,
    `sed -i /default_transaction_read_only/d ${DATA_ROOT}/[0-9]*/docker/postgresql.auto.conf`,
  );
  await bringUp(session);
  say(`The stack runs on Postgres ${wanted}.`);
}

/** Deletes the clusters of other major versions than the one in use. Throws one sentence. */
export async function forgetOldPostgres(session: Session): Promise<void> {
  const { engine, current, wanted } = await readVersions(session);
  if (current !== wanted) {
    throw new Error(
      `Postgres ${current} is in use, but the image has Postgres ${wanted}; nothing was deleted: run \`${COMMAND}\` first.`,
    );
  }
  const removed = await inPostgres(
    engine,
    `cd ${DATA_ROOT} && for each in [0-9]*; do [ "$each" = ${current} ] || { echo "$each" && rm -rf -- "$each"; }; done`,
    REMOVED_WITHIN_MS,
  );
  const names = outputLines(removed);
  session.say(
    names.length === 0
      ? "There are no earlier clusters."
      : `Deleted from the volume ${volumeName(engine, "postgres")}: ${names.join(", ")}.`,
  );
}

async function readVersions(session: Session): Promise<Versions> {
  const config = await readSettings(session);
  const { postgres: host } = config.placement;
  const engine = session.engines[host];
  const image = imageReferenceOf(config, "postgres");
  const wanted = await majorOfImage(engine, image);
  const view = await probeHost(engine);
  const runs = view !== null && postgresRuns(engine, view);
  const current = runs ? (await runningMajor(engine))[0] : undefined;
  // A run that was killed while the container was replaced.
  const isResumed =
    isOf(config, wanted) && (await majorsOf(engine, image)).includes(wanted);
  if (current === undefined && !isResumed) {
    throw new Error(
      `Postgres is not running on host ${host.toUpperCase()}, but the upgrade reads its data from the running server; nothing was changed: check out the version of Hearth that started it, run \`npm run deploy -- up --refresh\`, then this command again.`,
    );
  }
  if (Number(wanted) < Number(current)) {
    throw new Error(
      `the data is from Postgres ${current}, but the image ${image.split("@")[0]} has the older Postgres ${wanted}; nothing was changed: check out a version of Hearth with Postgres ${current}, or roll back (docs/deploy.md, "Another major version of Postgres").`,
    );
  }
  return { engine, config, image, current, wanted };
}

/** Reported by the image's own program; pulls the image if necessary. */
async function majorOfImage(
  engine: StackEngine,
  image: string,
): Promise<string> {
  const output = await dockerAt(
    engine,
    [
      "run",
      "--rm",
      "--network",
      "none",
      "--entrypoint",
      "bash",
      image,
      "-c",
      'postgres --version; echo "$PGDATA"',
    ],
    "",
    PULLED_WITHIN_MS,
  );
  const [, major = "", data] =
    /\(PostgreSQL\) (\d+)[^\n]*\n(\S*)/.exec(output) ?? [];
  if (data !== `${DATA_ROOT}/${major}/docker`) {
    throw new Error(
      `the image ${image.split("@")[0]} stores its data in ${data ?? "an unknown directory"}, not in ${DATA_ROOT}/VERSION/docker as official images do since 18; nothing was changed: choose another image with hearth:images.postgres.`,
    );
  }
  return major;
}

/** Whether a run was killed after the copy was complete and before its server was started. */
async function isCopied({
  engine,
  config,
  wanted,
}: Versions): Promise<boolean> {
  return isOf(config, wanted) && (await isReadOnly(engine));
}

function isOf({ postgresVersion }: HearthConfig, major: string): boolean {
  return postgresVersion.split(".")[0] === major;
}

/** The program rejects images of another major version than this setting's. */
async function useVersion(
  session: Session,
  { config, wanted }: Versions,
): Promise<void> {
  if (!isOf(config, wanted)) {
    await setSetting(session, "postgresVersion", {
      value: wanted,
      secret: false,
    });
  }
}

/** Removes the leftovers of a killed run and makes the server in use writable again. */
async function clear(engine: StackEngine): Promise<void> {
  await removeUnfinished(engine);
  if (await isReadOnly(engine)) {
    await makeWritable(engine);
  }
}

async function copyOrClear(
  session: Session,
  versions: Versions,
  current: string,
): Promise<void> {
  const { engine, config, image, wanted } = versions;
  session.say(
    `Postgres ${current} → ${wanted}: copying into a new cluster; until then the gateways serve known keys and record their calls afterwards.`,
  );
  try {
    await makeReadOnly(engine);
    const { tables, rows } = await copyCluster(engine, config, {
      image,
      major: wanted,
    });
    session.say(`Copied: ${tables} tables, ${rows} rows; the checksums match.`);
    await useVersion(session, versions);
  } catch (error) {
    await clear(engine);
    throw new Error(
      `the copy failed (${lastLine(error)}); Postgres ${current} is still in use: fix that, then run \`${COMMAND}\` again.`,
      { cause: error },
    );
  }
}

/** The copy is at most as large as the data, plus Postgres's write-ahead log. */
async function requireDiskSpace(engine: StackEngine): Promise<void> {
  const output = await inPostgres(
    engine,
    `du -sm "$PGDATA" && df -m --output=avail "$PGDATA"`,
    ANSWERS_WITHIN_MS,
  );
  const [, used = "0", available = "0"] =
    /^(\d+)[^]*\s(\d+)\s*$/.exec(output) ?? [];
  const needed = Math.ceil(Number(used) * 1.5) + 256;
  if (Number(available) < needed) {
    throw new Error(
      `the disk of the volume ${volumeName(engine, "postgres")} has ${available} MiB free, but a second cluster needs about ${needed} MiB; nothing was changed: free some space, then run the command again.`,
    );
  }
}
