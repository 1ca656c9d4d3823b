import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncDirectory } from "../core/durable-file.ts";
import { execute } from "../core/execute.ts";
import { Failure, codeOf } from "../core/failure.ts";
import {
  processesIn,
  startTimeOf,
} from "../supervisor/runtimes/process/identity.ts";
import { programOf } from "../supervisor/runtimes/process/ports.ts";
import { stopProcess } from "../supervisor/runtimes/process/stop.ts";
import { asUser, hasContent, type PostgresPlace } from "./postgres-place.ts";

const STOP_LEFTOVER_WITHIN_MS = 15_000;
const UNFINISHED = /^postgres[^.]*\.making-/;

/**
 * Creates the data directory at the first start, and checks that an existing one is complete and of the right version.
 * A new one is created under another name and renamed when complete.
 */
export async function ensureCluster(
  place: PostgresPlace,
  superuserPassword: string,
): Promise<void> {
  await removeUnfinished(dirname(place.data));
  if (hasContent(place.data)) {
    inspectCluster(place);
    await endLeftover(place.data);
  } else {
    rmSync(place.data, { recursive: true, force: true });
    await makeCluster(place, superuserPassword);
  }
}

/** The major version of a data directory; undefined if it has none. */
export function majorOfData(data: string): string | undefined {
  try {
    return readFileSync(join(data, "PG_VERSION"), "utf8").trim();
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/** Throws a Failure when the data directory is incomplete, of another version, or of another user. */
export function inspectCluster(
  place: Pick<PostgresPlace, "data" | "major" | "user">,
): void {
  const missing = ["PG_VERSION", "postgresql.conf", "global/pg_control"].find(
    (file) => !hasBytes(join(place.data, file)),
  );
  if (missing !== undefined) {
    throw new Failure(
      `${place.data} is not a complete Postgres data directory (${missing} is missing or empty): restore it from a copy, or move it away to start with an empty database.`,
    );
  }
  const major = majorOfData(place.data);
  if (major !== place.major) {
    throw new Failure(
      `${place.data} was created by Postgres ${major}, this Hearth contains Postgres ${place.major}, and the programs of ${major} are not installed: check out the version of Hearth that created it and run \`npm start\`, then check this one out again and run \`hearth upgrade\`.`,
    );
  }
  const owner = statSync(place.data).uid;
  const ours = place.user?.uid ?? process.getuid?.() ?? owner;
  if (owner !== ours) {
    throw new Failure(
      `${place.data} belongs to user id ${owner}, but Postgres would run as id ${ours}: run the command as that user, or change the owner of the directory (chown -R).`,
    );
  }
}

function hasBytes(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Removes what killed commands left incomplete in `parent`, and stops servers that still run on it. */
export async function removeUnfinished(parent: string): Promise<void> {
  if (!existsSync(parent)) {
    return;
  }
  for (const name of readdirSync(parent).filter((each) =>
    UNFINISHED.test(each),
  )) {
    const path = join(parent, name);
    if (statSync(path).isDirectory()) {
      await endLeftover(path);
    }
    rmSync(path, { recursive: true, force: true });
  }
}

/** Creates a cluster at `place.data`: `fill` works on it under a temporary name, and it is renamed when that is done. */
export async function makeCluster(
  place: PostgresPlace,
  superuserPassword: string,
  fill: (making: PostgresPlace) => Promise<void> = async () => {},
): Promise<void> {
  const making = `${place.data}.making-${process.pid}`;
  const passwordFile = `${making}.password`;
  mkdirSync(making, { mode: 0o700 });
  try {
    writeFileSync(passwordFile, superuserPassword, { mode: 0o600, flag: "wx" });
    if (place.user !== undefined) {
      for (const path of [making, passwordFile]) {
        chownSync(path, place.user.uid, place.user.gid);
      }
    }
    await runInitdb(place, buildInitdbArgs(making, passwordFile));
    await fill({ ...place, data: making });
    renameSync(making, place.data);
    syncDirectory(dirname(place.data));
  } finally {
    rmSync(making, { recursive: true, force: true });
    rmSync(passwordFile, { force: true });
  }
}

function buildInitdbArgs(
  data: string,
  passwordFile: string,
): readonly string[] {
  return [
    `--pgdata=${data}`,
    "--username=postgres",
    `--pwfile=${passwordFile}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    // The same sort order and case rules on every machine, whatever its C library.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
  ];
}

async function runInitdb(
  place: PostgresPlace,
  args: readonly string[],
): Promise<void> {
  const { ok, stderr, reason } = await execute(
    join(place.binaries, "bin", "initdb"),
    args,
    {
      ...asUser(place.user),
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
      stdout: "ignore",
    },
  );
  if (ok) {
    return;
  }
  if (stderr.includes("No space left on device")) {
    throw new Failure(
      `no space is left on the disk that holds ${place.data}: free some, then run the command again.`,
    );
  }
  const cause = stderr.trim().split("\n").slice(-3).join(" ") || reason;
  throw new Failure(
    `Postgres could not create its data directory ${place.data} (initdb: ${cause}): fix that, then run the command again.`,
  );
}

/** Stops a Postgres that still runs on the directory although it is not recorded; its lock file identifies it. */
export async function endLeftover(data: string): Promise<void> {
  const lockFile = join(data, "postmaster.pid");
  if (!existsSync(lockFile)) {
    return;
  }
  const pid = Number(readFileSync(lockFile, "utf8").split("\n")[0]);
  const startTime = Number.isInteger(pid) ? startTimeOf(pid) : undefined;
  if (startTime !== undefined && programOf(pid) === "postgres") {
    await stopProcess({ pid, startTime }, "SIGINT", STOP_LEFTOVER_WITHIN_MS);
  }
  await untilUnused(data);
  // The recorded id may belong to another program, or to a dead process that was not reaped (in a container whose first
  // process does not): Postgres would take either for a running server. No process uses the directory, so the file can go.
  rmSync(lockFile, { force: true });
}

/** The children of a killed server outlive it for a moment, and two servers must never use one directory. */
async function untilUnused(data: string): Promise<void> {
  const deadline = performance.now() + STOP_LEFTOVER_WITHIN_MS;
  for (;;) {
    const left = processesIn(data, "postgres");
    if (left.length === 0) {
      return;
    }
    if (performance.now() > deadline) {
      throw new Failure(
        `Postgres processes still run on ${data} (pid ${left.join(", ")}): end them, then run the command again.`,
      );
    }
    await sleep(50);
  }
}
