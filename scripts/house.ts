// Measures the codebase, a line a room (npm run house): files, lines, comments, long functions, imports, dependencies.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import ts from "typescript";
import { inProject } from "../infra/project-files.ts";
import { ROOMS } from "./rooms.ts";

const TEST = /\.(test|scenario|browser)\.ts$|-(fixture|child)\.ts$|\/testing\//;
const LONG = 60;
const TOO_LONG = 100;

interface SourceFile {
  readonly path: string;
  readonly lines: number;
  readonly commentLines: number;
  /** Longer than LONG, lines of code without blank ones and comments. */
  readonly longFunctions: readonly { name: string; lines: number }[];
}

const rows = ROOMS.map((room) => {
  const files = sourceFiles(room);
  const product = files.filter(({ path }) => !isTest(path));
  const functions = product.flatMap(({ longFunctions }) => longFunctions);
  const lines = sum(product.map((file) => file.lines));
  const comments = sum(product.map(({ commentLines }) => commentLines));
  return {
    room,
    files: product.length,
    lines,
    "comments %": lines === 0 ? 0 : Math.round((comments / lines) * 1000) / 10,
    "test lines": sum(files.map((file) => file.lines)) - lines,
    [`functions > ${LONG}`]: functions.length,
    [`> ${TOO_LONG}`]: functions.filter((each) => each.lines > TOO_LONG).length,
    packages: dependenciesOf(room),
  };
});
console.table(rows);
const { cycles, upward } = readImports();
console.log(
  `${sum(rows.map(({ lines }) => lines))} lines of product, ${sum(rows.map((row) => row["test lines"]))} of tests; ${cycles} imports in circles, ${upward} against the rules of .dependency-cruiser.mjs`,
);

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function isTest(path: string): boolean {
  return path.startsWith("test/") || TEST.test(path);
}

function sourceFiles(room: string): readonly SourceFile[] {
  return execFileSync("git", ["ls-files", "-z", `${room}/*.ts`], {
    cwd: inProject("."),
    encoding: "utf8",
  })
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

/** Numbers of the lines that hold nothing but a comment. */
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

/** Direct dependencies at run time; undefined for a room that is no package. */
function dependenciesOf(room: string): number | undefined {
  const manifest = inProject(`${room}/package.json`);
  if (!existsSync(manifest)) {
    return undefined;
  }
  const { dependencies = {} } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly dependencies?: Readonly<Record<string, string>>;
  };
  return Object.keys(dependencies).length;
}

function readImports(): { readonly cycles: number; readonly upward: number } {
  const { summary } = JSON.parse(
    execFileSync(
      process.execPath,
      [
        inProject("node_modules/dependency-cruiser/bin/dependency-cruiser.mjs"),
        "--output-type",
        "json",
        ...ROOMS,
      ],
      { cwd: inProject("."), encoding: "utf8", maxBuffer: 256 * 1024 * 1024 },
    ),
  ) as {
    readonly summary: {
      readonly violations: readonly { readonly rule: { name: string } }[];
    };
  };
  const cycles = summary.violations.filter(
    ({ rule }) => rule.name === "no-cycles",
  ).length;
  return { cycles, upward: summary.violations.length - cycles };
}
