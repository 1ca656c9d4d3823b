import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
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
import type { BuiltImage } from "./images.ts";
import { findProductionPackages } from "./production-packages.ts";
import { inProject, projectRoot } from "./project-files.ts";

export interface ImageContext {
  /** Holds the Dockerfile and everything it copies. */
  readonly directory: string;
  /** Of the whole content: 16 hex digits. */
  readonly hash: string;
}

interface Recipe {
  /** Files and folders of this repository that go under /app. */
  readonly sources: readonly string[];
  /** Empty folders that volumes are put over: a new volume takes their owner. */
  readonly folders: readonly string[];
  readonly user: string;
  readonly owner: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const recipes: Readonly<Record<BuiltImage, Recipe>> = {
  gateway: {
    sources: ["gateway", "look", "config/gateway.yaml"],
    folders: ["var/lib/hearth/journal"],
    user: "1000:0",
    owner: "1000:0",
    // Few bytes of garbage rather than few collections: a gateway shares its host.
    command: ["node", "--max-semi-space-size=16", "gateway/main.ts"],
    environment: {},
  },
  supervisor: {
    sources: [
      "supervisor",
      "look",
      "config/supervisor.yaml",
      // A restore migrates an empty database first.
      "gateway/db/migrations",
    ],
    folders: ["var/lib/hearth", "var/lib/hearth/backups"],
    user: "1000:0",
    owner: "1000:0",
    // It mostly waits: a small heap rather than quick code (supervisor/small-memory.ts says what each option does).
    command: [
      "node",
      "--max-semi-space-size=1",
      "--optimize-for-size",
      "--v8-pool-size=1",
      "supervisor/main.ts",
    ],
    // On its volume: from the second start on nothing is compiled and no compiler loaded, which takes 20 MB.
    environment: { NODE_COMPILE_CACHE: "/var/lib/hearth/cache" },
  },
  notes: {
    sources: ["notes"],
    // CouchDB's places and user: the image stands in for CouchDB's unchanged.
    folders: ["opt/couchdb/data", "opt/couchdb/etc/local.d"],
    user: "5984:0",
    owner: "5984:0",
    command: [
      "node",
      "notes/main.ts",
      "--ini",
      "/opt/couchdb/etc/local.d/10-hearth.ini",
    ],
    environment: { NOTES_DIR: "/opt/couchdb/data" },
  },
};

/**
 * Assembles an image's build context under `.hearth/images/`: sources, the production packages they need, a Dockerfile that only
 * copies. So a host needs no package registry and no BuildKit, and what runs is what is installed here. Done anew at each call;
 * the hash, in the directory's name too, tells whether anything changed.
 */
export function assembleImage(image: BuiltImage, base: string): ImageContext {
  const recipe = recipes[image];
  const parent = inProject(join(".hearth", "images"));
  mkdirSync(parent, { recursive: true });
  removeOldContexts(parent);
  const fresh = mkdtempSync(join(parent, `.${image}-`));
  try {
    fillContext(fresh, image, recipe, base);
    const hash = hashDirectory(fresh);
    const directory = join(parent, `${image}-${hash}`);
    // Another run may have put the same content there, and a build may be reading it.
    if (!existsSync(directory)) renameSync(fresh, directory);
    return { directory, hash };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

const keptMs = 60 * 60 * 1000;

function removeOldContexts(parent: string): void {
  for (const name of readdirSync(parent)) {
    const directory = join(parent, name);
    const age =
      Date.now() -
      (statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > keptMs) rmSync(directory, { recursive: true, force: true });
  }
}

function fillContext(
  directory: string,
  image: BuiltImage,
  recipe: Recipe,
  base: string,
): void {
  mkdirSync(join(directory, "app"));
  for (const source of recipe.sources)
    copySource(source, join(directory, "app"));
  for (const folder of findProductionPackages(inProject(image)))
    copyPackage(folder, join(directory, "app"));
  writeFileSync(
    join(directory, "app", "package.json"),
    `${JSON.stringify({ private: true, type: "module" })}\n`,
  );
  for (const folder of recipe.folders)
    mkdirSync(join(directory, "root", folder), { recursive: true });
  if (image === "supervisor") addCommand(join(directory, "root"));
  writeFileSync(join(directory, "Dockerfile"), buildDockerfile(recipe, base));
  evenOutModes(directory);
}

/** COPY and nothing that runs: a host builds it without any network. */
export function buildDockerfile(recipe: Recipe, base: string): string {
  const variables = {
    NODE_ENV: "production",
    ...recipe.environment,
  };
  return [
    `FROM ${base}`,
    ...Object.entries(variables).map(([name, value]) => `ENV ${name}=${value}`),
    `COPY --chown=${recipe.owner} root/ /`,
    "COPY app/ /app/",
    "WORKDIR /app",
    `USER ${recipe.user}`,
    // Node as process 1 gets no default signal handling: our programs handle SIGTERM themselves.
    "STOPSIGNAL SIGTERM",
    `CMD ${JSON.stringify(recipe.command)}`,
    "",
  ].join("\n");
}

function copySource(source: string, app: string): void {
  const to = join(app, source);
  mkdirSync(dirname(to), { recursive: true });
  cpSync(inProject(source), to, {
    recursive: true,
    filter: (path) => !/(\.test\.ts|[/\\](node_modules|fixtures))$/.test(path),
  });
}

/** What a package carries for people and compilers only. */
const needless =
  /(\.d\.[cm]?ts|\.map|\.md|\.markdown)$|^(test|tests|docs|example|examples|\.github)$/i;

function copyPackage(folder: string, app: string): void {
  const to = join(app, relative(projectRoot, folder));
  mkdirSync(dirname(to), { recursive: true });
  cpSync(folder, to, {
    recursive: true,
    dereference: true,
    filter: (path) =>
      !needless.test(relative(folder, path)) &&
      !/[/\\]node_modules$/.test(relative(folder, path)) &&
      relative(folder, path) !== "node_modules",
  });
}

/** `docker exec hearth-supervisor hearth …` */
function addCommand(root: string): void {
  const file = join(root, "usr", "local", "bin", "hearth");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    '#!/bin/sh\nexec node /app/supervisor/cli/main.ts "$@"\n',
    { mode: 0o755 },
  );
}

/** The operator's umask must not be part of the image. */
function evenOutModes(directory: string): void {
  for (const path of walk(directory)) {
    const isDirectory = statSync(path).isDirectory();
    chmodSync(
      path,
      isDirectory || path.endsWith("/usr/local/bin/hearth") ? 0o755 : 0o644,
    );
  }
}

function hashDirectory(directory: string): string {
  const hash = createHash("sha256");
  for (const path of walk(directory)) {
    hash.update(`${relative(directory, path)}\0`);
    if (statSync(path).isFile()) hash.update(readFileSync(path));
  }
  return hash.digest("hex").slice(0, 16);
}

function walk(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true })
    .toSorted((x, y) => (x.name < y.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? [path, ...walk(path)] : [path];
    });
}
