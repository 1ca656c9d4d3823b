import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./stack/stack.ts";

/**
 * The blocks of commands of a page that follow a comment `<!-- MARK -->`, in order: tests run them as they are printed. Throws if there
 * is none.
 */
export function commandsOf(page: string, mark: string): readonly string[] {
  const text = readFileSync(join(projectRoot, page), "utf8");
  const blocks = [
    ...text.matchAll(
      new RegExp(`^<!-- ${mark} -->\\n+\`\`\`sh\\n([^]*?)^\`\`\`$`, "gm"),
    ),
  ].map(([, commands = ""]) => commands);
  if (blocks.length === 0) {
    throw new Error(`${page} has no commands marked "${mark}"`);
  }
  return blocks;
}
