import { readFileSync } from "node:fs";
import { inProject } from "../project-files.ts";

/** The shipped stack file with every setting, printed by `npm run settings`. */
export const annotatedStackFile = inProject("config/stack.example.yaml");

/** The file of a stack's configuration. */
export function stackFile(stackName: string): string {
  return inProject(`Pulumi.${stackName}.yaml`);
}

/** The shipped list of all settings as comments, without the example hosts, for the head of a new stack's file. */
export function settingsList(): string {
  const comments = readFileSync(annotatedStackFile, "utf8")
    .split("\n")
    .flatMap((line) => /^(?: {0,2}(#.*)|)$/.exec(line)?.slice(1) ?? []);
  return `${comments.join("\n").trim()}\n\n`;
}
