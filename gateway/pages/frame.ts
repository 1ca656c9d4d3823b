import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { html, NOTHING, type Html } from "../../core/html.ts";
import { fitTables } from "../../core/table-cells.ts";

/** The look of a page's verdict: a shape and a sign, in addition to the colour. */
export type Look = "ok" | "warn" | "bad" | "none";

const SIGNS: Readonly<Record<Look, string>> = {
  ok: "●",
  warn: "▲",
  bad: "✕",
  none: "○",
};

const DRAWINGS: Readonly<Record<Look, string>> = {
  ok: '<circle cx="8" cy="8" r="7"/>',
  warn: '<path d="M8 1 15.5 15H.5z"/>',
  bad: '<path d="M3 1 8 6l5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5-5-5z"/>',
  none: '<path d="M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm0 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z"/>',
};

export interface PageParts {
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
  readonly html: string;
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
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width,initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${SIGNS[look]} ${title} · Hearth</title>
        <link rel="icon" href="${iconOf(look)}" />
        ${{ html: `<style>${style}</style>` }}
      </head>
      <body>
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
        ${{ html: fitTables(main.html) }}
        <footer><span>Hearth gateway ${version}</span></footer>
        ${script === null ? NOTHING : { html: `<script>${script}</script>` }}
      </body>
    </html>`;
  return { html: page.html, contentSecurityPolicy: policyOf(style, script) };
}

/** The mark before a verdict. */
export function mark(look: Look): Html {
  return html`<span class="mark ${look}"
    ><svg viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">
      ${{ html: DRAWINGS[look] }}
    </svg></span
  >`;
}

const ICON_COLOURS: Readonly<Record<Look, string>> = {
  ok: "#1a7f43",
  warn: "#a35a00",
  bad: "#bb1f1f",
  none: "#6b6258",
};

function iconOf(look: Look): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="${ICON_COLOURS[look]}">${DRAWINGS[look]}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function policyOf(style: string, script: string | null): string {
  return [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    script === null ? "script-src 'none'" : `script-src '${hashOf(script)}'`,
    "connect-src 'self'",
    "img-src data:",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
