import { readFileSync, readdirSync } from "node:fs";
import { parse, YAMLParseError } from "yaml";
import { annotatedTwoHosts, type AnnotatedFile } from "./annotated-stack.ts";
import { DEFAULT_STACK } from "../../core/stack-flag.ts";
import { inProject } from "../project-files.ts";

/** The file of a stack's configuration. */
export function stackFile(stackName: string): string {
  return inProject(`Pulumi.${stackName}.yaml`);
}

/** The names of all stacks with a file. */
export function stacksWithFile(directory = inProject(".")): readonly string[] {
  return readdirSync(directory).flatMap(
    (name) => /^Pulumi\.(.+)\.yaml$/.exec(name)?.slice(1) ?? [],
  );
}

/** Throws one sentence for a stack without a file: the engine would create and select it. */
export function rejectUnknownStack(name: string, directory?: string): void {
  const known = stacksWithFile(directory).toSorted();
  const own = name.split("/").at(-1) ?? name;
  if (!known.includes(own)) {
    throw new Error(
      `there is no Pulumi.${own}.yaml, the settings of the stack ${own}; nothing was changed: ${known.length === 0 ? "" : `name another stack with --stack (${known.join(", ")}), or `}run \`npm run init${own === DEFAULT_STACK ? "" : ` -- --stack ${own}`}\` to create this one.`,
    );
  }
}

/** The settings in a stack's file; secrets stay encrypted. Throws one sentence if it is not valid YAML. */
export function readStackFile(file: string): Readonly<Record<string, string>> {
  try {
    const content = parse(readFileSync(file, "utf8")) as {
      readonly config?: Readonly<Record<string, unknown>>;
    } | null;
    return Object.fromEntries(
      Object.entries(content?.config ?? {}).map(([key, value]) => [
        key.replace(/^hearth:/, ""),
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );
  } catch (error) {
    throw error instanceof YAMLParseError
      ? new Error(`${file} cannot be read: ${error.message}`)
      : error;
  }
}

/** A shipped list of all settings as comments, without the examples of required ones, for the head of a new stack's file. */
export function settingsList({
  file,
}: AnnotatedFile = annotatedTwoHosts): string {
  const comments = readFileSync(inProject(file), "utf8")
    .split("\n")
    .flatMap((line) => /^(?: {0,2}(#.*)|)$/.exec(line)?.slice(1) ?? []);
  return `${comments.join("\n").trim()}\n\n`;
}
