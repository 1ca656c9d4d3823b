import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(
  new URL("../../docs/performance.md", import.meta.url),
);

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
