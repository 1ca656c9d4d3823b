import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import {
  annotatedKubernetes,
  annotatedStack,
  annotatedTwoHosts,
} from "./annotated-stack.ts";
import {
  exampleOf,
  isList,
  metaOf,
  partsOf,
  settingAt,
  type Setting,
} from "./config-lookup.ts";
import { configSchema } from "./config-schema.ts";
import { kubernetesSchema } from "../kubernetes/kubernetes-schema.ts";
import { projectConfig } from "./project-config.ts";
import { inProject } from "../project-files.ts";

test.each([annotatedTwoHosts, annotatedKubernetes])(
  "$file is what `npm run settings` writes",
  (list) => {
    expect(readFileSync(inProject(list.file), "utf8")).toBe(
      annotatedStack(list),
    );
  },
);

test("Pulumi.yaml declares the settings as `npm run settings` writes them, and the engine's version", () => {
  const project = parse(readFileSync(inProject("Pulumi.yaml"), "utf8")) as {
    readonly config: unknown;
    readonly requiredPulumiVersion: string;
  };
  expect(project.config).toEqual(projectConfig());
  const { dependencies } = JSON.parse(
    readFileSync(inProject("infra/package.json"), "utf8"),
  ) as { readonly dependencies: Readonly<Record<string, string>> };
  expect(project.requiredPulumiVersion).toBe(
    `>=${dependencies["pulumi"]} <4.0.0`,
  );
});

const SETTINGS = [
  ...Object.entries(configSchema.shape),
  ...Object.entries(kubernetesSchema.shape),
];

test.each(SETTINGS)("%s has documentation", (_name, setting) => {
  expect(metaOf(setting).description).toMatch(/\.$/);
});

/** Every setting with a value, by its path. */
function leavesOf(path: string, setting: Setting): [string, Setting][] {
  const parts = Object.entries(partsOf(setting));
  return parts.length === 0
    ? [[path, setting]]
    : parts.flatMap(([name, part]) => leavesOf(`${path}.${name}`, part));
}

// The values of $(…), < FILE and NAME are only known to the shell and the operator.
const examples = SETTINGS.flatMap(([name, setting]) => leavesOf(name, setting))
  .map(([path, setting]) => ({ path, setting, example: exampleOf(setting) }))
  .filter(
    ({ example }) => example !== undefined && !/\$\(|< |NAME/.test(example),
  );

test.each(examples)("the example of $path is valid", ({ setting, example }) => {
  const value = isList(setting)
    ? [example]
    : example?.startsWith("{") === true
      ? JSON.parse(example)
      : example;
  expect(z.safeParse(setting, value).error).toBeUndefined();
});

const pages = readdirSync(inProject("docs")).filter((name) =>
  name.endsWith(".md"),
);

test.each(["../README.md", ...pages])(
  "%s names settings that exist",
  (page) => {
    const named = [
      ...readFileSync(inProject(`docs/${page}`), "utf8").matchAll(
        /\bhearth:([a-z]\w*(?:\.\w+)*)/g,
      ),
    ].map(([, path = ""]) => path);
    expect(
      named.filter((path) =>
        [configSchema, kubernetesSchema].every(
          (schema) => settingAt(path.split("."), schema) === undefined,
        ),
      ),
    ).toEqual([]);
  },
);
