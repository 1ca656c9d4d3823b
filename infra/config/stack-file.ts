import { readFileSync } from "node:fs";
import { annotatedTwoHosts, type AnnotatedFile } from "./annotated-stack.ts";
import { inProject } from "../project-files.ts";

/** The file of a stack's configuration. */
export function stackFile(stackName: string): string {
  return inProject(`Pulumi.${stackName}.yaml`);
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
