import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { HOUR_MS } from "../../core/duration.ts";
import type { BuiltImage } from "./images.ts";
import { findProductionPackages } from "./production-packages.ts";
import { inProject, projectRoot } from "../project-files.ts";

export interface ImageContext {
  readonly image: BuiltImage;
  /** Reference of the base image. */
  readonly base: string;
  /** Hash of the whole content: 16 hex digits. */
  readonly hash: string;
  /** Returns a directory with the Dockerfile and everything it copies, which is written unless it exists. */
  readonly assemble: () => string;
}

interface Recipe {
  /** Files and folders of this repository to be copied to /app. */
  readonly sources: readonly string[];
  /** Empty mount points: a new volume inherits their owner. */
  readonly folders: readonly string[];
  readonly user: string;
  readonly owner: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const recipes: Readonly<Record<BuiltImage, Recipe>> = {
  gateway: {
    sources: ["core", "gateway", "config/gateway.yaml"],
    folders: ["var/lib/hearth/journal"],
    user: "1000:0",
    owner: "1000:0",
    // Prefers a small heap to few collections: a gateway shares its host.
    command: ["node", "--max-semi-space-size=16", "gateway/main.ts"],
    // On the journal's volume: after the first stop in order nothing is compiled, which saves half a second and 35 MB.
    environment: {
      NODE_COMPILE_CACHE: "/var/lib/hearth/journal/cache",
      // As in embedded/gateway.ts.
      MALLOC_ARENA_MAX: "2",
    },
  },
  supervisor: {
    sources: [
      "core",
      "supervisor",
      "console",
      "embedded",
      "cli",
      "config/supervisor.yaml",
      // A restore first migrates an empty database.
      "gateway/database/migrations",
    ],
    folders: ["var/lib/hearth", "var/lib/hearth/backups"],
    user: "1000:0",
    owner: "1000:0",
    // Mostly idle: a small heap is preferred to fast code (each option is explained in supervisor/node-options.ts).
    command: [
      "node",
      "--max-semi-space-size=1",
      "--optimize-for-size",
      "--v8-pool-size=1",
      "supervisor/main.ts",
    ],
    // On its volume: after the first start nothing is compiled, which saves the compiler's 20 MB.
    environment: { NODE_COMPILE_CACHE: "/var/lib/hearth/cache" },
  },
  notes: {
    sources: ["core", "notes"],
    // CouchDB's paths and user: the image is a drop-in replacement for CouchDB's.
    folders: ["opt/couchdb/data", "opt/couchdb/etc/local.d"],
    user: "5984:0",
    owner: "5984:0",
    command: [
      "node",
      "notes/main.ts",
      "--ini",
      "/opt/couchdb/etc/local.d/10-hearth.ini",
    ],
    environment: {
      NOTES_DIR: "/opt/couchdb/data",
      // The thread of each vault loads the store's code: from the second start, the first vault opens in a third of the time.
      NODE_COMPILE_CACHE: "/opt/couchdb/data/cache",
    },
  },
};

/** Debian packages of the supervisor's image with off-site backups. */
export const RCLONE_PACKAGES: readonly string[] = ["ca-certificates", "rclone"];

/** A file of a build context or, with neither source nor text, a folder. */
interface ContextEntry {
  /** Relative to the context's directory. */
  readonly path: string;
  readonly source?: string;
  readonly text?: string;
  readonly executable?: boolean;
}

/**
 * A build context: sources, their production packages and a Dockerfile that only copies. A host therefore needs no package
 * registry and no BuildKit, and runs exactly what is installed here. Nothing is written before `assemble`, which writes to
 * `.hearth/images/` under the content's hash.
 */
export function imageContext(
  image: BuiltImage,
  base: string,
  packages: readonly string[] = [],
): ImageContext {
  const entries = listEntries(
    image,
    buildDockerfile(recipes[image], base, packages),
  );
  const hash = hashEntries(entries);
  return {
    image,
    base,
    hash,
    assemble() {
      const parent = inProject(join(".hearth", "images"));
      const directory = join(parent, `${image}-${hash}`);
      mkdirSync(parent, { recursive: true });
      removeOldContexts(parent, image, directory);
      if (!existsSync(directory)) {
        writeContext(entries, directory, join(parent, `.${image}-`));
      }
      return directory;
    },
  };
}

const KEPT_MS = HOUR_MS;

/** Keeps the one in use, which a build may be reading however old it is, and those of other images. */
function removeOldContexts(
  parent: string,
  image: BuiltImage,
  inUse: string,
): void {
  for (const name of readdirSync(parent)) {
    const directory = join(parent, name);
    if (directory === inUse || !/^\.?([a-z]+)-/.exec(name)?.includes(image)) {
      continue;
    }
    const age =
      Date.now() -
      (statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > KEPT_MS) {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}

/** Everything in the context, sorted by path. */
function listEntries(
  image: BuiltImage,
  dockerfile: string,
): readonly ContextEntry[] {
  const recipe = recipes[image];
  const entries: ContextEntry[] = [
    { path: "Dockerfile", text: dockerfile },
    {
      path: "app/package.json",
      text: `${JSON.stringify({ private: true, type: "module" })}\n`,
    },
    { path: "root" },
    ...recipe.folders.map((folder) => ({ path: join("root", folder) })),
    ...recipe.sources.flatMap((source) =>
      filesBelow(inProject(source), (path) => !NOT_SOURCE.test(path)).map(
        toApp,
      ),
    ),
    ...productionPackagesOf(recipe.sources).flatMap((folder) =>
      filesBelow(folder, (path) => !NEEDLESS.test(relative(folder, path))).map(
        toApp,
      ),
    ),
  ];
  if (image === "supervisor") {
    entries.push(HEARTH_COMMAND);
  }
  return entries.toSorted((x, y) => (x.path < y.path ? -1 : 1));
}

const NOT_SOURCE = /(\.test\.ts|\.md|[/\\](node_modules|fixtures))$/;

/** Files of a package for people and compilers only, and nested packages, which are listed separately. */
const NEEDLESS =
  /(\.d\.[cm]?ts|\.map|\.md|\.markdown)$|^(test|tests|docs|example|examples|\.github)$|(^|[/\\])node_modules$/i;

/** The production packages of every room in an image. */
function productionPackagesOf(sources: readonly string[]): readonly string[] {
  const rooms = sources
    .map(inProject)
    .filter((source) => existsSync(join(source, "package.json")));
  return [...new Set(rooms.flatMap(findProductionPackages))].toSorted();
}

/** `docker exec hearth-supervisor hearth …` */
const HEARTH_COMMAND: ContextEntry = {
  path: "root/usr/local/bin/hearth",
  text: '#!/bin/sh\nexec node /app/cli/main.ts "$@"\n',
  executable: true,
};

function toApp(source: string): ContextEntry {
  return { path: join("app", relative(projectRoot, source)), source };
}

/** A file itself, or the files of a folder that pass the filter; links are followed. */
function filesBelow(
  path: string,
  takes: (path: string) => boolean,
): readonly string[] {
  if (!takes(path)) {
    return [];
  }
  if (!statSync(path).isDirectory()) {
    return [path];
  }
  return readdirSync(path).flatMap((name) =>
    filesBelow(join(path, name), takes),
  );
}

function hashEntries(entries: readonly ContextEntry[]): string {
  const hash = createHash("sha256");
  for (const { path, source, text } of entries) {
    hash
      .update(`${path}\0`)
      .update(source === undefined ? (text ?? "") : readFileSync(source));
  }
  return hash.digest("hex").slice(0, 16);
}

function writeContext(
  entries: readonly ContextEntry[],
  directory: string,
  prefix: string,
): void {
  const fresh = mkdtempSync(prefix);
  try {
    for (const { path, source, text, executable } of entries) {
      const to = join(fresh, path);
      if (source === undefined && text === undefined) {
        mkdirSync(to, { recursive: true });
        continue;
      }
      mkdirSync(dirname(to), { recursive: true });
      if (source === undefined) {
        writeFileSync(to, text ?? "");
      } else {
        copyFileSync(source, to);
      }
      chmodSync(to, executable === true ? 0o755 : 0o644);
    }
    openFolders(fresh);
    // Another run may have written the same content, and a build may be reading it.
    if (!existsSync(directory)) {
      renameSync(fresh, directory);
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** The operator's umask must not affect the image. */
function openFolders(directory: string): void {
  chmodSync(directory, 0o755);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      openFolders(join(directory, entry.name));
    }
  }
}

/**
 * COPY only, no RUN: a host builds it without network access. With Debian packages it needs Debian's
 * mirrors; their layer comes first, so that a change of the sources does not download them again.
 */
function buildDockerfile(
  recipe: Recipe,
  base: string,
  packages: readonly string[] = [],
): string {
  const variables = {
    NODE_ENV: "production",
    ...recipe.environment,
  };
  return [
    `FROM ${base}`,
    ...(packages.length === 0
      ? []
      : [
          "USER root",
          `RUN apt-get update && apt-get install --yes --no-install-recommends ${packages.join(" ")} && rm -rf /var/lib/apt/lists/*`,
        ]),
    ...Object.entries(variables).map(([name, value]) => `ENV ${name}=${value}`),
    `COPY --chown=${recipe.owner} root/ /`,
    "COPY app/ /app/",
    "WORKDIR /app",
    `USER ${recipe.user}`,
    // As process 1, Node has no default signal handling: the programs handle SIGTERM themselves.
    "STOPSIGNAL SIGTERM",
    `CMD ${JSON.stringify(recipe.command)}`,
    "",
  ].join("\n");
}
