import { readFileSync } from "node:fs";
import { pagePolicy } from "../../core/page-policy.ts";
import { html, NOTHING, type Html } from "../../core/html.ts";
import { iconOf, shapeOf, signs, type Look } from "../../core/shapes.ts";
import { THEMES, type Theme } from "../../core/theme.ts";
import { fitTables } from "../../core/table-cells.ts";
import { keepAmountsWhole } from "../../core/whole-amounts.ts";
import { readable } from "../../core/words.ts";

interface PageParts {
  /** Path of the page in the navigation. */
  readonly current: "/" | "/me" | "/docs";
  readonly title: string;
  readonly look: Look;
  readonly main: Html;
  readonly style: string;
  readonly script: string | null;
  readonly version: string;
}

/** A page in one file; its policy allows only its own style and script. */
export interface Page {
  readonly path: string;
  readonly html: (theme: Theme) => string | Buffer;
  readonly contentSecurityPolicy: string;
}

const LINKS = [
  ["/me", "My usage"],
  ["/docs", "API"],
] as const;

let stylesheet: string | undefined;

/** Adds head, navigation and footer to a page. */
export function framed(parts: PageParts): Page {
  const { current, title, look, main, script, version } = parts;
  stylesheet ??= readFileSync(
    new URL("../../core/hearth.css", import.meta.url),
    "utf8",
  );
  const style = `${stylesheet}\n${parts.style}`;
  const body = { html: keepAmountsWhole(fitTables(readable(main.html))) };
  const page = (theme: Theme) =>
    html`<!doctype html>
      <html lang="en" data-theme="${theme}">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width,initial-scale=1" />
          <meta name="referrer" content="no-referrer" />
          <title>${signs[look]} ${readable(title)} · Hearth</title>
          <link rel="icon" href="${iconOf(look)}" />
          ${{ html: `<style>${style}</style>` }}
        </head>
        <body>
          <a class="skip" href="#main">Skip to content</a>
          <header class="top">
            <a class="brand" href="/">Hearth</a>
            <nav aria-label="Pages">
              ${LINKS.map(([path, name]) =>
                path === current
                  ? html`<a href="${path}" aria-current="page">${name}</a>`
                  : html`<a href="${path}">${name}</a>`,
              )}
            </nav>
          </header>
          ${body}
          <footer>
            <span>Hearth gateway ${version}</span>
            <nav class="theme" aria-label="Theme">
              Theme
              ${THEMES.map((each) =>
                each === theme
                  ? html`<a href="${current}?theme=${each}" aria-current="true"
                      >${each}</a
                    >`
                  : html`<a href="${current}?theme=${each}">${each}</a>`,
              )}
            </nav>
          </footer>
          ${script === null ? NOTHING : { html: `<script>${script}</script>` }}
        </body>
      </html>`;
  return {
    path: current,
    html: (theme) => page(theme).html,
    contentSecurityPolicy: pagePolicy(style, script === null ? [] : [script]),
  };
}

/** The mark before a verdict. */
export function mark(look: Look): Html {
  return html`<span class="mark ${look}">${{ html: shapeOf(look) }}</span>`;
}
