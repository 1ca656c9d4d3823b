import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Eta } from "eta";
import { pagePolicy } from "../../core/page-policy.ts";
import { OPERATOR } from "../../supervisor/history/author.ts";
import { projectRoot } from "../../supervisor/home/home.ts";
import { mayRequest } from "../http/route-roles.ts";
import type { Caller } from "../sign-in/user-sign-in.ts";
import { COPY_SCRIPT } from "./copy.ts";
import { DECRYPT_SCRIPT } from "./decrypt.ts";
import { KEYBOARD_SCRIPT } from "./keyboard.ts";
import { PLAYGROUND_SCRIPT } from "./playground/playground-script.ts";
import { REFRESH_SCRIPT } from "./refresh.ts";
import { withCode } from "../../core/html.ts";
import { THEMES, type Theme } from "../../core/theme.ts";
import { iconOf, shapeOf, signs, type Look } from "../../core/shapes.ts";
import { fitTables } from "../../core/table-cells.ts";
import { keepAmountsWhole } from "../../core/whole-amounts.ts";

/** A page in the navigation. */
interface PageLink {
  readonly path: string;
  readonly name: string;
  /** The letter that opens the page after `g`. */
  readonly key?: string;
}

export const PAGE_LINKS: readonly PageLink[] = [
  { path: "/", name: "Status", key: "s" },
  { path: "/spend", name: "Spend", key: "p" },
  { path: "/keys", name: "Keys", key: "k" },
  { path: "/models", name: "Models", key: "m" },
  { path: "/notes", name: "Notes", key: "n" },
  { path: "/jobs", name: "Jobs", key: "j" },
  { path: "/backups", name: "Backups", key: "b" },
  { path: "/alerts", name: "Alerts", key: "a" },
  { path: "/reports/", name: "Reports", key: "r" },
];

/** The page of the own keys. */
export const OWN_PAGE_PATH = "/me";

const OWN_PAGE_LINK: PageLink = {
  path: OWN_PAGE_PATH,
  name: "My keys",
  key: "o",
};

/** Pages below those of the navigation. */
export const FURTHER_PAGE_LINKS: readonly (PageLink & {
  /** Path of the page in the navigation. */
  readonly under: string;
})[] = [
  { path: "/spend/calls", name: "Calls", key: "c", under: "/spend" },
  { path: "/users", name: "Users", key: "u", under: "/keys" },
  { path: "/teams", name: "Teams", key: "t", under: "/keys" },
  { path: "/playground", name: "Playground", key: "y", under: "/models" },
  { path: "/audit", name: "Audit", key: "l", under: "/keys" },
];

/** Something to know about the whole page, above it. */
export interface Notice {
  readonly text: string;
  readonly href: string | null;
  readonly link: string;
}

interface Frame {
  /** Tab title and heading. */
  readonly title: string;
  readonly look: Look;
  /** Path of the current page in the navigation; null outside of it. */
  readonly current: string | null;
  /** Whether the browser has a session to sign out of. */
  readonly signedIn: boolean;
  /** Who opened the page; null before the sign-in. */
  readonly caller: Caller | null;
  /** Seconds between refreshes; null for none. */
  readonly refreshes: number | null;
  /** Path of the same data as JSON. */
  readonly json: string | null;
  /** Message of the action that led to this page. */
  readonly message: string | null;
  readonly notice: Notice | null;
  /** Things that need attention, by the path of the page where they belong. */
  readonly needs: ReadonlyMap<string, number>;
  readonly theme: Theme;
  /** IANA name of the zone of all times; null where it is unknown. */
  readonly timeZone: string | null;
  /** How commands are typed here, such as `npx hearth`. */
  readonly hearth: string;
}

interface Fixed {
  readonly eta: Eta;
  readonly stylesheet: string;
  readonly version: string;
}

let fixed: Promise<Fixed> | undefined;

/** Parts of every page, loaded with the first one. */
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

/** What every template and its parts have besides their own data. */
interface Shared {
  readonly shapeOf: typeof shapeOf;
  readonly frame: Frame;
  /** Whether the caller may use a button or, with the method GET, follow a link. */
  readonly may: (address: string, method?: "GET" | "POST") => boolean;
  /** A command as it is typed here. */
  readonly typedHere: (command: string) => string;
  /** Markup of a sentence with commands between backticks. */
  readonly sentence: (text: string) => string;
}

/** The data of a template, under other names. */
export type View = object & { readonly [Name in keyof Shared]?: never };

/** One self-contained page: the frame around a template of `templates/`, escaped by default. */
export async function renderPage(
  frame: Frame,
  template: string,
  view: View,
): Promise<string> {
  fixed ??= load();
  const { eta, stylesheet, version } = await fixed;
  const typedHere = (command: string): string =>
    command.replace(/(?<=^|; )hearth(?= )/g, frame.hearth);
  const shared: Shared = {
    shapeOf,
    frame,
    may: (address, method = "POST") =>
      mayRequest(frame.caller?.role ?? null, method, address),
    typedHere,
    sentence: (text) => withCode(text, typedHere).html,
  };
  const { may } = shared;
  const body = keepAmountsWhole(
    fitTables(eta.render(template, { ...view, ...shared })),
  );
  return eta.render("frame", {
    frame,
    body,
    stylesheet,
    version,
    sign: signs[frame.look],
    icon: iconOf(frame.look),
    warning: shapeOf("warn"),
    user: userOf(frame),
    links: linksFor(frame.caller, may).map((link) => ({
      ...link,
      needs: needsOf(frame, link.path),
    })),
    searches: isFor(frame.caller, may, "/search"),
    shortcuts: [
      ...linksFor(frame.caller, may),
      ...FURTHER_PAGE_LINKS.filter(({ path }) =>
        isFor(frame.caller, may, path),
      ),
    ].filter(({ key }) => key !== undefined),
    themes: THEMES,
    scripts: [
      ...(frame.refreshes === null ? [] : [REFRESH_SCRIPT]),
      COPY_SCRIPT,
      KEYBOARD_SCRIPT,
    ],
    // Without script the whole page reloads visibly, so less often.
    reloads: frame.refreshes === null ? null : frame.refreshes * 2,
  });
}

type May = (address: string, method?: "GET" | "POST") => boolean;

/** Before the sign-in, the navigation is complete. */
function isFor(caller: Caller | null, may: May, path: string): boolean {
  return caller === null || may(path, "GET");
}

function linksFor(caller: Caller | null, may: May): readonly PageLink[] {
  return [
    ...PAGE_LINKS.filter(({ path }) => isFor(caller, may, path)),
    ...(caller?.userId === undefined && caller?.role !== "user"
      ? []
      : [OWN_PAGE_LINK]),
  ];
}

/** Who is signed in, unless it is the operator. */
function userOf({ caller }: Frame): string | null {
  return caller === null || caller.name === OPERATOR
    ? null
    : `${caller.name}, ${caller.role}`;
}

/** Of a page in the navigation and those below it. */
function needsOf({ needs }: Frame, path: string): number {
  return [{ path }, ...FURTHER_PAGE_LINKS.filter(({ under }) => under === path)]
    .map((link) => needs.get(link.path) ?? 0)
    .reduce((sum, count) => sum + count, 0);
}

/** Allows the style and scripts of the pages by their hashes, and nothing from other origins. */
export async function contentSecurityPolicy(): Promise<string> {
  fixed ??= load();
  const { stylesheet } = await fixed;
  return pagePolicy(stylesheet, [
    REFRESH_SCRIPT,
    COPY_SCRIPT,
    KEYBOARD_SCRIPT,
    DECRYPT_SCRIPT,
    PLAYGROUND_SCRIPT,
  ]);
}
