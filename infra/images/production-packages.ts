import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectRoot } from "../project-files.ts";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * The installed folders of every package that the one in `folder` needs at run time, resolved like Node does. Optional ones
 * that are not installed are omitted. Throws one sentence if a required one is missing.
 */
export function findProductionPackages(folder: string): readonly string[] {
  const found = new Set<string>();
  const waiting = [folder];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { dependencies = {}, optionalDependencies = {} } = readManifest(at);
    for (const name of Object.keys({
      ...optionalDependencies,
      ...dependencies,
    })) {
      const place = locate(name, at);
      if (place === undefined) {
        if (name in optionalDependencies) {
          continue;
        }
        throw new Error(
          `package ${name} is required for an image but not installed: run \`npm ci\`, then the same command again.`,
        );
      }
      if (found.has(place)) {
        continue;
      }
      found.add(place);
      waiting.push(place);
    }
  }
  return [...found].toSorted();
}

function readManifest(folder: string): Manifest {
  return JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  ) as Manifest;
}

/** The package in the nearest parent's node_modules, within the project. */
function locate(name: string, from: string): string | undefined {
  const root = realpathSync(projectRoot);
  for (let at = realpathSync(from); at.startsWith(root); at = dirname(at)) {
    const place = join(at, "node_modules", name);
    if (existsSync(join(place, "package.json"))) {
      return place;
    }
  }
  return undefined;
}
