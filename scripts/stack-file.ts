import { readFileSync } from "node:fs";
import { inProject } from "../infra/project-files.ts";

/** Where Pulumi keeps a stack's configuration. */
export function stackFile(stackName: string): string {
  return inProject(`Pulumi.${stackName}.yaml`);
}

/** The shipped list of all settings as comments, without the example hosts: the head of a new stack's file. */
export function settingsList(): string {
  const comments = readFileSync(inProject("config/stack.example.yaml"), "utf8")
    .split("\n")
    .flatMap((line) => /^ {0,2}(#.*)$/.exec(line)?.[1] ?? []);
  return `${comments.join("\n")}\n\n`;
}
