import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import ts from "typescript";
import { expect, test } from "vitest";
import { inProject } from "../infra/project-files.ts";

const read = (path: string) => readFileSync(inProject(path), "utf8");

const { workspaces } = JSON.parse(read("package.json")) as {
  readonly workspaces: readonly string[];
};

/** Loaded by their names, or started as programs. */
const WITHOUT_IMPORT = ["pino-pretty", "pulumi"];

/** The packages that a folder's product code imports, lazily too. */
function importedIn(folder: string): readonly string[] {
  const files = globSync(`${folder}/**/*.ts`, {
    cwd: inProject("."),
    exclude: ["**/node_modules/**", "**/*.test.ts", "**/testing/**"],
  });
  const modules = files
    .filter((file) => !/-(fixture|child)\.ts$/.test(file))
    .flatMap((file) => ts.preProcessFile(read(file)).importedFiles)
    .map(({ fileName }) => fileName)
    .filter((name) => !name.startsWith(".") && !isBuiltin(name));
  const packages = modules.flatMap(
    (name) => /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? [],
  );
  return [...new Set(packages)].toSorted();
}

test.each(workspaces)(
  "the package.json of %s lists what its code imports, and nothing else",
  (folder) => {
    const { dependencies = {} } = JSON.parse(
      read(`${folder}/package.json`),
    ) as { readonly dependencies?: Readonly<Record<string, string>> };
    const listed = Object.keys(dependencies).filter(
      (name) => !WITHOUT_IMPORT.includes(name),
    );
    expect(listed.toSorted()).toEqual(importedIn(folder));
  },
);
