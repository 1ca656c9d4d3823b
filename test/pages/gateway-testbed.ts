import type { Browser, Page } from "playwright-core";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import { DESK, openBrowser, openPage, type Watched } from "./browser.ts";
import { startConsoleTestbed } from "./console-testbed.ts";

/** Changes take effect within a second; a busy machine may take longer. */
export const PATIENT = { timeout: 20_000 };

/** A console with the master key of a real gateway. */
export interface GatewayTestbed {
  readonly browser: Browser;
  readonly fixture: AdminFixture;
  readonly address: string;
  /** A page of the console on a desktop, and the browser's errors on it. */
  readonly open: (
    path: string,
    options?: { readonly javaScript: boolean },
  ) => Promise<Watched>;
  readonly stop: () => Promise<void>;
}

/** `models` are additional ones, as YAML below `model_list:`. */
export async function startGatewayTestbed(
  models = "",
): Promise<GatewayTestbed> {
  const browser = await openBrowser();
  const fixture = await startAdminFixture(models);
  const testbed = await startConsoleTestbed({
    services: [],
    env: { GATEWAY_URL: fixture.url, PROXY_MASTER_KEY: MASTER_KEY },
  });
  return {
    browser,
    fixture,
    address: testbed.address,
    open: async (path, options) => {
      const opened = await openPage(browser, DESK, options);
      await opened.page.goto(`${testbed.address}${path}`);
      return opened;
    },
    stop: async () => {
      await testbed.stop();
      await fixture.stop();
      await browser.close();
    },
  };
}

/** Opens the confirmation of a button and confirms. */
export async function confirm(
  page: Page,
  verb: string,
  typed?: string,
): Promise<void> {
  await page.locator("summary", { hasText: `${verb}…` }).click();
  const form = page.locator("details[open] form");
  if (typed !== undefined) {
    await form.getByLabel("to confirm").fill(typed);
  }
  await form.getByRole("button", { name: verb }).click();
}

export function mainText(page: Page): Promise<string> {
  return page.locator("main").innerText();
}
