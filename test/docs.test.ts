import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { USAGE } from "../infra/deploy/flags.ts";
import { hearth } from "../cli/main.ts";
import type { Verb } from "../cli/verb.ts";

// What the documentation names must exist: pages, headings, commands, options.

const project = fileURLToPath(new URL("..", import.meta.url));
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(project, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

function read(page: string): string {
  return readFileSync(join(project, page), "utf8");
}

/** As GitHub names the anchors of headings. */
function anchorsOf(page: string): ReadonlySet<string> {
  return new Set(
    [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

function brokenLinks(page: string): readonly string[] {
  return [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      return (
        !existsSync(join(project, file)) ||
        (anchor !== undefined && !anchorsOf(file).has(anchor))
      );
    });
}

test.each(PAGES)("every link in %s has a target", (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

/** What a page sets as code: lines of blocks, and spans. */
function codeIn(page: string): readonly string[] {
  const [outside, blocks] = [[] as string[], [] as string[]];
  read(page)
    .split(/^```.*$/m)
    .forEach((part, at) => (at % 2 === 0 ? outside : blocks).push(part));
  return [
    ...blocks.flatMap((block) => block.split("\n")),
    ...[...outside.join("\n").matchAll(/`([^`]+)`/g)].map(([, code = ""]) =>
      code.replace(/\s+/g, " "),
    ),
  ].map((code) => code.replace(/\s#.*$/, ""));
}

const allCode = PAGES.flatMap(codeIn);

/** What follows `program` in the code of all pages, up to the next command. */
function callsOf(program: RegExp): readonly string[] {
  return [
    ...new Set(
      allCode.flatMap((code) =>
        [...code.matchAll(program)].map(([, words = ""]) => words.trim()),
      ),
    ),
  ].toSorted();
}

const isWord = (word: string) => /^[a-z][a-z-]*$/.test(word);

/** The words before the first option or value. */
function verbsOf(call: string): readonly string[] {
  const words = call.split(" ");
  const end = words.findIndex((word) => !isWord(word));
  return words.slice(0, end === -1 ? undefined : end);
}

function optionsOf(call: string): readonly string[] {
  return [...call.matchAll(/(?:^| )(--[a-z][a-z-]*)/g)].map(
    ([, option = ""]) => option,
  );
}

/** The verb that the words name, without its arguments; undefined if there is none. */
async function findVerb(
  verb: Verb,
  [word, ...rest]: readonly string[],
): Promise<Verb | undefined> {
  if (verb.verbs === undefined || word === undefined) {
    return verb;
  }
  const next = verb.verbs[word];
  return next === undefined ? undefined : findVerb(await next(), rest);
}

const FOR_EVERY_VERB = ["--help", "--version"];

function hasOption({ args = {} }: Verb, option: string): boolean {
  const name = option.slice("--".length);
  return (
    FOR_EVERY_VERB.includes(option) ||
    Object.hasOwn(args, name) ||
    args[name.replace(/^no-/, "")]?.type === "boolean"
  );
}

test("every command of hearth that the pages name exists, with its options", async () => {
  const calls = callsOf(
    /(?<![\w./-]|-u |-n |--namespace )hearth ([a-z][^|;&<>()[\]…]*)/g,
  );
  expect(calls.length).toBeGreaterThan(50);
  const wrong: string[] = [];
  for (const call of calls) {
    const verb = await findVerb(hearth, verbsOf(call));
    const missing = optionsOf(call).filter(
      (option) => verb === undefined || !hasOption(verb, option),
    );
    if (verb === undefined || missing.length > 0) {
      wrong.push(`hearth ${call} ${missing.join(" ")}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("every npm script and every verb of deploy that the pages name exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const named = callsOf(/\bnpm run ([a-z][\w:-]*)/g);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  const deploys = callsOf(/\bnpm run deploy -- ([a-z]+)/g);
  expect(deploys).toContain("up");
  expect(
    deploys.filter((verb) => !new RegExp(`^  ${verb}\\b`, "m").test(USAGE)),
  ).toEqual([]);
});
