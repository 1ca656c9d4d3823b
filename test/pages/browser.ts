import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { chromium, type Browser, type Page } from "playwright-core";
import { findChromium } from "./find-chromium.ts";

export interface Screen {
  readonly name: string;
  readonly width: number;
  readonly scheme: "light" | "dark";
}

/** A desk by day, a phone by night, and the narrowest that must work. */
export const SCREENS: readonly Screen[] = [
  { name: "desk", width: 1280, scheme: "light" },
  { name: "desk-dark", width: 1280, scheme: "dark" },
  { name: "phone", width: 360, scheme: "light" },
  { name: "phone-dark", width: 360, scheme: "dark" },
  { name: "narrow", width: 320, scheme: "light" },
];

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    // Containers run as root, where Chromium's own sandbox does not work; only our own pages are opened.
    args: ["--no-sandbox"],
  });
}

export interface Watched {
  readonly page: Page;
  /** What the browser complained about: errors of script and policy, requests to elsewhere. */
  readonly complaints: readonly string[];
}

/** The cookies of the consoles that run, by their addresses. */
const sessions = new Map<string, string>();

/** Pages that are opened from now on are signed in at this console; returns how to end that. */
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

/** A fresh page of its own browser context that notes what goes wrong in it. */
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

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** axe-core's findings, one line each; none is what we want. Without `reload` the page is examined as it stands. */
export async function findBarriers(
  page: Page,
  { reload = true }: { readonly reload?: boolean } = {},
): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  // The page's own policy forbids strange scripts; the examiner's is let in past it.
  await session.send("Page.setBypassCSP", { enabled: true });
  if (reload) {
    await page.reload();
  }
  if (reload) {
    await page.addScriptTag({ path: axeFile });
  } else {
    await page.evaluate(readFileSync(axeFile, "utf8"));
  }
  const results = await page.evaluate<AxeResults>("axe.run()");
  await session.send("Page.setBypassCSP", { enabled: false });
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

/** Pixels by which the page is wider than its window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
}
