import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot: string = fileURLToPath(
  new URL("..", import.meta.url),
);

/** An operator's path: absolute, or relative to the project's root. */
export function inProject(path: string): string {
  return resolve(projectRoot, path);
}

/** Reads a file named by a setting. Throws one sentence with the command that fixes it, also for an empty file. */
export function readNamedFile(setting: string, path: string): string {
  const unusable = (why: string) =>
    new Error(
      `${setting} names ${path}, which ${why}: npx pulumi config set ${setting} PATH`,
    );
  let text: string;
  try {
    text = readFileSync(inProject(path), "utf8");
  } catch (error) {
    throw unusable(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  // The docker plugin rejects empty uploads.
  if (text.trim() === "") {
    throw unusable("is empty");
  }
  return text;
}
