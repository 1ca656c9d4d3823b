import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { $ } from "zx";
import { inProject } from "../infra/project-files.ts";

const EXPORT =
  /^export (?:abstract |async |declare )*(?:class|const|function\*?|interface|let|type) (\w+)/gm;
/** Every form of import but {@link WHOLE}: lint rejects names that are exported from another file. */
const IMPORT = /^import (?:type )?\{([^}]*)\} from "(\.[^"]+)";$/gm;
/** Modules that are loaded later, replaced, or named in a type: any of their names may be used. */
const WHOLE =
  /^import (?:type )?\* as \w+ from "(\.[^"]+)"|\b(?:import|mock)\(\s*"(\.[^"]+)"/gm;
/** Functions that vitest finds by their name. */
const FOUND_BY_NAME = "setup";

test("every exported name, of a type too, is imported by another file", async () => {
  const { stdout } = await $({
    cwd: inProject("."),
  })`git ls-files -z ${["*.ts", "*.js"]}`;
  const texts = stdout
    .split("\0")
    .filter((path) => path !== "" && !path.includes("/fixtures/"))
    .map((path) => [path, readFileSync(inProject(path), "utf8")] as const);
  const whole = new Set<string>();
  const imported = new Set<string>();
  for (const [path, text] of texts) {
    for (const [, names = "", from = ""] of text.matchAll(IMPORT)) {
      for (const [, name] of names.matchAll(/(?:type )?(\w+)(?: as \w+)?,?/g)) {
        imported.add(`${join(dirname(path), from)}: ${name}`);
      }
    }
    for (const [, star, later] of text.matchAll(WHOLE)) {
      whole.add(join(dirname(path), star ?? later ?? ""));
    }
  }
  const unused = texts
    .filter(([path]) => !whole.has(path) && !path.endsWith(".d.ts"))
    .flatMap(([path, text]) =>
      [...text.matchAll(EXPORT)].map(([, name]) => `${path}: ${name}`),
    )
    .filter((name) => !name.endsWith(`: ${FOUND_BY_NAME}`))
    .filter((name) => !imported.has(name));
  expect(unused).toEqual([]);
});
