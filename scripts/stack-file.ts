import { existsSync, readFileSync } from "node:fs";
import { inProject } from "../infra/project-files.ts";

/** Where Pulumi keeps a stack's configuration. */
export function stackFile(stackName: string): string {
  return inProject(`Pulumi.${stackName}.yaml`);
}

/** Whether the file is the shipped example, which no stack was made from yet: that gives it a salt. */
export function isExample(file: string): boolean {
  return (
    existsSync(file) && !readFileSync(file, "utf8").includes("encryptionsalt")
  );
}
