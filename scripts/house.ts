// Measures the codebase by folder (npm run house): files, lines, comments, long functions, imports, dependencies.
import { existsSync, readFileSync } from "node:fs";
import ts from "typescript";
import { $ } from "zx";
import { inProject } from "../infra/project-files.ts";
import { FOLDERS } from "./folders.ts";
import { sum } from "../core/sum.ts";

const TEST =
  /\.(test|scenario|browser|agent)\.ts$|-(fixture|child)\.ts$|\/testing\//;
const LONG = 60;
const TOO_LONG = 100;

const shell = $({ cwd: inProject(".") });

interface SourceFile {
  readonly path: string;
  readonly lines: number;
  readonly commentLines: number;
  /** With more than LONG lines, not counting blank lines and comments. */
  readonly longFunctions: readonly { name: string; lines: number }[];
}

const rows = await Promise.all(FOLDERS.map(measureFolder));
console.table(rows);
const { cycles, upward } = await readImports();
console.log(
  `${sum(rows.map(({ lines }) => lines))} lines of product, ${sum(rows.map((row) => row["test lines"]))} of tests; ${cycles} import cycles, ${upward} imports that violate .dependency-cruiser.mjs`,
);

async function measureFolder(folder: string) {
  const files = await sourceFiles(folder);
  const product = files.filter(({ path }) => !isTest(path));
  const functions = product.flatMap(({ longFunctions }) => longFunctions);
  const lines = sum(product.map((file) => file.lines));
  const comments = sum(product.map(({ commentLines }) => commentLines));
  return {
    folder,
    files: product.length,
    lines,
    "comments %": lines === 0 ? 0 : Math.round((comments / lines) * 1000) / 10,
    "test lines": sum(files.map((file) => file.lines)) - lines,
    [`functions > ${LONG}`]: functions.length,
    [`> ${TOO_LONG}`]: functions.filter((each) => each.lines > TOO_LONG).length,
    packages: dependenciesOf(folder),
  };
}

function isTest(path: string): boolean {
  return path.startsWith("test/") || TEST.test(path);
}

async function sourceFiles(folder: string): Promise<readonly SourceFile[]> {
  const { stdout } = await shell`git ls-files -z ${`${folder}/*.ts`}`;
  return stdout
    .split("\0")
    .filter((path) => path !== "" && existsSync(inProject(path)))
    .map(measure);
}

function measure(path: string): SourceFile {
  const text = readFileSync(inProject(path), "utf8");
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const comments = commentLinesOf(text);
  const longFunctions: { name: string; lines: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const lines = codeLines(source, node, comments);
      if (lines > LONG) {
        longFunctions.push({ name: node.name?.getText() ?? "", lines });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return {
    path,
    lines: text.split("\n").length - 1,
    commentLines: comments.size,
    longFunctions,
  };
}

/** Indexes of the lines that consist of a comment. */
function commentLinesOf(text: string): ReadonlySet<number> {
  return new Set(
    text
      .split("\n")
      .flatMap((line, at) => (/^\s*(\/\/|\/?\*)/.test(line) ? [at] : [])),
  );
}

function codeLines(
  source: ts.SourceFile,
  node: ts.Node,
  comments: ReadonlySet<number>,
): number {
  const first = source.getLineAndCharacterOfPosition(node.getStart()).line;
  return node
    .getText()
    .split("\n")
    .filter((line, at) => line.trim() !== "" && !comments.has(first + at))
    .length;
}

/** Number of direct dependencies at run time; undefined for a folder that is not a package. */
function dependenciesOf(folder: string): number | undefined {
  const manifest = inProject(`${folder}/package.json`);
  if (!existsSync(manifest)) {
    return undefined;
  }
  const { dependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly dependencies?: Readonly<Record<string, string>>;
  };
  return Object.keys(dependencies).length;
}

async function readImports(): Promise<{
  readonly cycles: number;
  readonly upward: number;
}> {
  const { stdout } =
    await shell`${process.execPath} node_modules/dependency-cruiser/bin/dependency-cruiser.mjs --output-type json ${FOLDERS}`;
  const { summary } = JSON.parse(stdout) as {
    readonly summary: {
      readonly violations: readonly { readonly rule: { name: string } }[];
    };
  };
  const cycles = summary.violations.filter(
    ({ rule }) => rule.name === "no-cycles",
  ).length;
  return { cycles, upward: summary.violations.length - cycles };
}
