import { expect, test } from "vitest";
import { hearth } from "./main.ts";
import { checkWords, type Verb } from "./verb.ts";

interface Listed {
  /** As it is typed, such as `keys new`. */
  readonly path: string;
  readonly verb: Verb;
}

/** Every command of the table, with those of its groups. */
async function commandsOf(group: Verb, path = ""): Promise<readonly Listed[]> {
  const found = await Promise.all(
    Object.entries(group.verbs ?? {}).map(async ([word, load]) => {
      const verb = await load();
      const typed = `${path} ${word}`.trim();
      return verb.verbs === undefined
        ? [{ path: typed, verb }]
        : commandsOf(verb, typed);
    }),
  );
  return found.flat();
}

const commands = await commandsOf(hearth);

test("the table has commands", () => {
  expect(commands.length).toBeGreaterThan(60);
});

test.each(commands)("hearth $path prints JSON", ({ verb }) => {
  expect(verb.args).toMatchObject({ json: { type: "boolean" } });
});

test.each(commands)(
  "hearth $path has a description and an example that runs",
  ({ path, verb }) => {
    expect(verb.name).toBe(path);
    expect(verb.description).toMatch(/\.$/);
    const [, given] =
      new RegExp(`(?:^|\\s)hearth ${path}(?: (.*))?$`).exec(verb.example) ?? [];
    expect(verb.example).toContain(`hearth ${path}`);
    const words = (given ?? "")
      .replace(/\s(>>|<|\|).*$/, "")
      .match(/"[^"]*"|\S+/g);
    expect(() => checkWords(verb, words ?? [])).not.toThrow();
  },
);
