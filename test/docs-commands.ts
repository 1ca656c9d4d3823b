import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./stack/stack.ts";

/**
 * The blocks of a page that follow a comment `<!-- MARK -->`, in order: tests run them as they are printed. Commands (`sh`) by default.
 * Throws if there is none.
 */
export function commandsOf(
  page: string,
  mark: string,
  language = "sh",
): readonly string[] {
  const text = readFileSync(join(projectRoot, page), "utf8");
  const blocks = [
    ...text.matchAll(
      new RegExp(
        `^<!-- ${mark} -->\\n+\`\`\`${language}\\n([^]*?)^\`\`\`$`,
        "gm",
      ),
    ),
  ].map(([, commands = ""]) => commands);
  if (blocks.length === 0) {
    throw new Error(`${page} has no ${language} block marked "${mark}"`);
  }
  return blocks;
}
