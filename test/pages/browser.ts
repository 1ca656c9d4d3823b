import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { chromium, type Browser, type Page } from "playwright-core";
import { findChromium } from "./find-chromium.ts";

interface Screen {
  readonly name: string;
  readonly width: number;
  readonly scheme: "light" | "dark";
  /** Whether axe-core examines it: together these two have every colour and layout. */
  readonly examined?: boolean;
}

export const DESK: Screen = { name: "desk", width: 1280, scheme: "light" };

/** Desktop and phone in light and dark, a small laptop, a tablet, and the narrowest supported width. */
export const SCREENS: readonly Screen[] = [
  DESK,
  { name: "desk-dark", width: 1280, scheme: "dark", examined: true },
  { name: "laptop", width: 1024, scheme: "light" },
  { name: "tablet", width: 768, scheme: "light" },
  { name: "phone", width: 360, scheme: "light", examined: true },
  { name: "phone-dark", width: 360, scheme: "dark" },
  { name: "narrow", width: 320, scheme: "light" },
];

/** Gives an open page the size and colours of a screen. */
export async function showOn(
  page: Page,
  { width, scheme }: Omit<Screen, "name">,
): Promise<void> {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    // Containers run as root, where Chromium's sandbox does not work; tests open trusted pages only.
    args: ["--no-sandbox"],
  });
}

export interface Watched {
  readonly page: Page;
  /** Errors and warnings of the browser: scripts, policy, requests to other origins. */
  readonly complaints: readonly string[];
}

/** Session cookies of the running consoles by address. */
const sessions = new Map<string, string>();

/** Signs in the pages opened from now on at this console; returns a function to end that. */
export async function signInAt(
  address: string,
  password: string,
): Promise<() => void> {
  const answer = await fetch(`${address}/sign-in`, {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams({ password }),
  });
  sessions.set(address, answer.headers.get("set-cookie") ?? "");
  return () => sessions.delete(address);
}

function cookiesOf(): { url: string; name: string; value: string }[] {
  return [...sessions].map(([url, cookie]) => {
    const [, name = "", value = ""] = /^([^=]+)=([^;]+)/.exec(cookie) ?? [];
    return { url, name, value };
  });
}

/** A page in a new browser context that records its errors. */
export async function openPage(
  browser: Browser,
  { width, scheme }: Omit<Screen, "name">,
  options: {
    readonly javaScript?: boolean;
    /** Whether the operator is signed in at every console; true when left out. */
    readonly signedIn?: boolean;
  } = {},
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    javaScriptEnabled: options.javaScript ?? true,
    timezoneId: "UTC",
  });
  if (options.signedIn ?? true) {
    await context.addCookies(cookiesOf());
  }
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return { page, complaints };
}

const AXE = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);

/** Violations found by axe-core in the current state of the page, one line each. */
export async function findViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const results = await page.evaluate<AxeResults>("axe.run()");
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

/** Tables of which a part is hidden, because they are wider than their place. */
export function clippedTables(page: Page): Promise<readonly string[]> {
  return page.evaluate(
    `[...document.querySelectorAll(".scroll")]
      .filter((each) => each.scrollWidth > each.clientWidth)
      .map((each) => each.getAttribute("aria-label") + ", by " + (each.scrollWidth - each.clientWidth) + " px")`,
  );
}

/** Pixels by which the page is wider than its window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
}
