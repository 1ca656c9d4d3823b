import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Eta } from "eta";
import { projectRoot } from "../../supervisor/home/home.ts";
import { COPY_SCRIPT } from "./copy.ts";
import { DECRYPT_SCRIPT } from "./decrypt.ts";
import { REFRESH_SCRIPT } from "./refresh.ts";
import { iconOf, shapeOf, signs, type Look } from "../../core/shapes.ts";

/** A page of the console; those that are there stand in the navigation. */
export interface PageLink {
  readonly path: string;
  readonly name: string;
}

export const PAGE_LINKS: readonly PageLink[] = [
  { path: "/", name: "Status" },
  { path: "/spend", name: "Spend" },
  { path: "/keys", name: "Keys" },
  { path: "/notes", name: "Notes" },
  { path: "/jobs", name: "Jobs" },
  { path: "/reports/", name: "Reports" },
];

export interface Frame {
  /** The verdict: tab title and heading. */
  readonly title: string;
  readonly look: Look;
  /** Path of the page that is shown; none of them when it stands outside the navigation. */
  readonly current: string | null;
  /** Somebody who came in by the form can go again. */
  readonly signedIn: boolean;
  /** Seconds after which the page shows anew what changes; null when it does not. */
  readonly refreshes: number | null;
  /** Where a program gets the same. */
  readonly json: string | null;
  /** What the act that led here has to say. */
  readonly said: string | null;
}

interface Fixed {
  readonly eta: Eta;
  readonly stylesheet: string;
  readonly version: string;
}

let fixed: Promise<Fixed> | undefined;

/** What every page needs, loaded when the first one is asked for. */
async function load(): Promise<Fixed> {
  const { Eta } = await import("eta");
  const stylesheet = readFileSync(
    join(projectRoot, "core", "hearth.css"),
    "utf8",
  );
  const { version } = JSON.parse(
    readFileSync(join(projectRoot, "supervisor", "package.json"), "utf8"),
  ) as { readonly version: string };
  const eta = new Eta({
    views: join(projectRoot, "console", "pages", "templates"),
    cache: true,
  });
  return { eta, stylesheet, version };
}

/** One self-contained page: the frame around a template of `templates/`, everything in it escaped by default. */
export async function renderPage(
  frame: Frame,
  template: string,
  view: object,
): Promise<string> {
  fixed ??= load();
  const { eta, stylesheet, version } = await fixed;
  const body = eta.render(template, { ...view, shapeOf, frame });
  return eta.render("frame", {
    frame,
    body,
    stylesheet,
    version,
    sign: signs[frame.look],
    icon: iconOf(frame.look),
    links: PAGE_LINKS,
    scripts:
      frame.refreshes === null ? [COPY_SCRIPT] : [REFRESH_SCRIPT, COPY_SCRIPT],
    // Without script the whole page is loaded again, under the reader's eyes: not as often.
    reloads: frame.refreshes === null ? null : frame.refreshes * 2,
  });
}

/** What a page may load and do: its own style and script by their hashes, nothing from elsewhere. */
export async function contentSecurityPolicy(): Promise<string> {
  fixed ??= load();
  const { stylesheet } = await fixed;
  return [
    "default-src 'none'",
    `style-src '${hashOf(stylesheet)}'`,
    `script-src ${[REFRESH_SCRIPT, COPY_SCRIPT, DECRYPT_SCRIPT].map((script) => `'${hashOf(script)}'`).join(" ")}`,
    "img-src data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
