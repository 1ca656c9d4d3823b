import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(
  new URL("../../docs/performance.md", import.meta.url),
);
/** Relative to the page. */
const PICTURES = "pictures";

/** Replaces the text between the marks `<!-- NAME -->` and `<!-- /NAME -->` of docs/performance.md. */
export function writeToPage(name: string, text: string): void {
  const [from, to] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const page = existsSync(PAGE) ? readFileSync(PAGE, "utf8") : "";
  const [start, end] = [page.indexOf(from), page.indexOf(to)];
  if (start < 0 || end < start) {
    throw new Error(
      `docs/performance.md has no marks ${from} and ${to}: add them at the place for the results.`,
    );
  }
  writeFileSync(
    PAGE,
    `${page.slice(0, start + from.length)}\n\n${text.trim()}\n\n${page.slice(end)}`,
  );
}

/** Writes a chart next to docs/performance.md and returns the line that shows it there. */
export function writePicture(name: string, title: string, svg: string): string {
  const path = `${PICTURES}/${name}.svg`;
  writeFileSync(join(dirname(PAGE), path), svg);
  return `![${title}](${path})`;
}
