import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { mayRequest } from "../../console/http/route-roles.ts";
import type { Role } from "../../supervisor/sign-in/roles.ts";
import { startAdminFixture, type AdminFixture } from "../servers/admin.ts";
import { MASTER_KEY } from "../servers/gateway.ts";
import {
  CLIENT,
  startOpenIdProvider,
  type OpenIdProvider,
} from "../servers/openid-provider.ts";
import {
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
  SCREENS,
  showOn,
  type Watched,
} from "./browser.ts";
import {
  startConsoleTestbed,
  withAlarm,
  type ConsoleTestbed,
} from "./console-testbed.ts";
import { fitEveryScreen, takePicture } from "./every-screen.ts";

let browser: Browser;
let provider: OpenIdProvider;
let fixture: AdminFixture;
let testbed: ConsoleTestbed;

beforeAll(async () => {
  // Another site than the console: its cookies are not sent along with redirects from there.
  const started = await startOpenIdProvider("localhost");
  provider = started.provider;
  [browser, fixture] = await Promise.all([openBrowser(), startAdminFixture()]);
  testbed = await startConsoleTestbed({
    services: [],
    programs: ["site"],
    env: { GATEWAY_URL: fixture.url, PROXY_MASTER_KEY: MASTER_KEY },
    past: withAlarm(
      {
        fingerprint: "nightly",
        level: "down",
        subject: "job nightly",
        text: "nightly failed",
        command: "hearth jobs run nightly",
        tried: [],
      },
      60_000,
    ),
    settings: {
      sign_in: [
        {
          name: "home",
          title: "Our account",
          issuer: provider.issuer,
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          scopes: ["openid", "profile", "email", "groups"],
          roles: {
            map: { viewers: "viewer", operators: "operator", admins: "admin" },
          },
          allow: { domains: ["example.org"] },
          users: { max_budget: 10 },
        },
      ],
    },
  });
  started.open(testbed.address, "home");
  await fixture.post("/user/new", { user_id: "anna" });
  await fixture.post("/team/new", { team_alias: "crew" });
});
afterAll(async () => {
  await testbed?.stop();
  await fixture?.stop();
  await provider?.stop();
  await browser?.close();
});
beforeEach(() => {
  for (const role of ["guest", "viewer", "operator", "admin"]) {
    provider.accounts.set(role, {
      email: `${role}@example.org`,
      email_verified: true,
      groups: [`${role}s`],
    });
  }
});

/** Signs in with the button and the provider's form. */
async function signIn(
  login: string,
  path: string,
  screen: Parameters<typeof openPage>[1] = { width: 1280, scheme: "light" },
): Promise<Watched> {
  const opened = await openPage(browser, screen, { signedIn: false });
  const { page } = opened;
  await page.goto(`${testbed.address}${path}`);
  await page.getByRole("link", { name: "Sign in with Our account" }).click();
  await page.getByLabel("Name").fill(login);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(`${testbed.address}${path}`);
  await page.getByText(`Signed in as ${login}@example.org (home)`).waitFor();
  return opened;
}

/** The sign-in page answers a request for another page, with status 401. */
const isUnexpected = (complaint: string) => !complaint.includes("401");

/** The page after a form was sent without a session. */
async function sendTooLate(name: string): Promise<Page> {
  const { page } = await openPage(browser, { width: 1280, scheme: "light" });
  await page.goto(`${testbed.address}/keys/new`);
  await page.getByLabel("Name").fill(name);
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  return page;
}

test("input sent after the session has ended is sent again after the password, also a wrong one before", async () => {
  const page = await sendTooLate("<kept>");
  expect(await page.locator("main").innerText()).toContain(
    "Your session has ended; nothing was changed. Sign in to send your input again.",
  );
  expect(await page.locator("[name=to]").inputValue()).toBe("/keys/new");
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "sign-in-kept-form");
  for (const password of ["wrong", testbed.operatorPassword]) {
    await page.getByLabel("Operator password").fill(password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  }
  await page.getByRole("heading", { name: "Signed in." }).waitFor();
  expect(await findViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByRole("heading", { name: 'Key "<kept>" created.' }).waitFor();
  await page.context().close();
});

test("input sent after the session has ended is sent again after a sign-in in another tab", async () => {
  const page = await sendTooLate("elsewhere");
  const opened = page.waitForEvent("popup");
  await page.getByRole("link", { name: "Sign in with Our account" }).click();
  const other = await opened;
  await other.getByLabel("Name").fill("admin");
  await other.getByRole("button", { name: "Continue" }).click();
  await other.getByText("Signed in as admin@example.org (home)").waitFor();
  await page.getByRole("button", { name: "Send again" }).click();
  await page
    .getByRole("heading", { name: 'Key "elsewhere" created.' })
    .waitFor();
  await page.context().close();
});

test("the sign-in page offers the provider and the password on every screen", async () => {
  const { page } = await openPage(
    browser,
    { width: 1280, scheme: "light" },
    { signedIn: false },
  );
  await page.goto(`${testbed.address}/jobs`);
  expect(await page.textContent("h1")).toBe("Sign in");
  for (const screen of SCREENS) {
    await showOn(page, screen);
    await takePicture(page, `sign-in-${screen.name}`);
    expect(await overflowOf(page), screen.name).toBe(0);
    if (screen.examined) {
      expect(await findViolations(page), screen.name).toEqual([]);
    }
  }
  await page.context().close();
});

test("on a phone: sign in, and out of both", async () => {
  const phone = { width: 360, scheme: "light" } as const;
  const { page, complaints } = await signIn("viewer", "/jobs", phone);
  expect(await overflowOf(page)).toBe(0);
  await takePicture(page, "signed-in-phone");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${provider.issuer}/session/end**`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${testbed.address}/`);
  expect(await page.textContent("h1")).toBe("Sign in");
  expect(complaints.filter(isUnexpected)).toEqual([]);
  await page.context().close();
});

test("while the provider is down the page says so, and the password works", async () => {
  await provider.down();
  const { page } = await openPage(
    browser,
    { width: 360, scheme: "light" },
    { signedIn: false },
  );
  await page.goto(`${testbed.address}/sign-in/with/home`);
  expect(await page.locator("main").innerText()).toContain(
    "Our account is unavailable (ECONNREFUSED). Sign in with the operator password, or try again later.",
  );
  await takePicture(page, "sign-in-provider-down");
  await page.getByLabel("Operator password").fill(testbed.operatorPassword);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(`${testbed.address}/`);
  await provider.up();
  await page.context().close();
});

const PAGES = [
  "/",
  "/services/site",
  "/jobs/health-report",
  "/alerts",
  "/keys",
  "/users",
  "/users/user?id=anna",
  "/teams",
  "/models",
  "/models/model?id=mock",
];

/** Visible buttons and links of a page that change something or lead to a form. */
async function offersOf(page: Page): Promise<readonly Offer[]> {
  return page.evaluate(`[
    ...[...document.querySelectorAll("main form[method=post]")].map((form) => ({ method: "POST", path: new URL(form.action).pathname })),
    ...[...document.querySelectorAll("main a[href]")].map((link) => ({ method: "GET", path: new URL(link.href).pathname })),
  ]`);
}

interface Offer {
  readonly method: "GET" | "POST";
  readonly path: string;
}

test.each<{
  readonly role: Role;
  readonly buttons: readonly string[];
}>([
  { role: "viewer", buttons: [] },
  {
    role: "operator",
    buttons: [
      "/alerts/silence",
      "/jobs/health-report/run",
      "/models/test",
      "/services/site/check",
      "/services/site/pause",
      "/services/site/restart",
      "/services/site/silence",
    ],
  },
  {
    role: "admin",
    buttons: [
      "/alerts/silence",
      "/jobs/health-report/run",
      "/models/switch-off",
      "/models/test",
      "/services/site/check",
      "/services/site/pause",
      "/services/site/restart",
      "/services/site/silence",
      "/users/block",
      "/users/delete",
    ],
  },
])(
  "$role: every page is shown, with the buttons that the role may use",
  async ({ role, buttons }) => {
    const { page, complaints } = await signIn(role, "/");
    const found = new Set<string>();
    const links = new Set<string>();
    for (const path of PAGES) {
      const answer = await page.goto(`${testbed.address}${path}`);
      expect(answer?.status(), path).toBe(200);
      for (const { method, path: to } of await offersOf(page)) {
        expect(mayRequest(role, method, to), `${path}: ${method} ${to}`).toBe(
          true,
        );
        (method === "POST" ? found : links).add(to);
      }
      await takePicture(page, `${role}${path.replaceAll(/\W+/g, "-")}`);
    }
    expect([...found].toSorted()).toEqual(buttons);
    expect(links.has("/keys/new")).toBe(role === "admin");
    expect(links.has("/models/new")).toBe(role === "admin");
    expect(complaints.filter(isUnexpected)).toEqual([]);
    await page.context().close();
  },
);

test("a person without a console role has the page of own keys, on every screen", async () => {
  const { page, complaints } = await signIn("guest", "/me");
  expect(await page.textContent("h1")).toBe(
    "guest@example.org has spent $ 0.00 of $ 10.00.",
  );
  await page.getByRole("link", { name: "Create key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("guest-laptop");
  await page.getByLabel("Budget (USD)").fill("2");
  await fitEveryScreen(page, "me-new");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByText("The key is shown only once").waitFor();
  const secret = (await page.locator("#the-key").textContent()) ?? "";
  await fixture.chat(secret, "Hello");
  await page.getByRole("link", { name: "All keys" }).click();
  await page.getByRole("link", { name: "guest-laptop" }).waitFor();
  await expect
    .poll(async () => {
      await page.reload();
      return page.getByRole("region", { name: "Latest calls" }).innerText();
    })
    .toContain("answered");
  await fitEveryScreen(page, "me");
  await page.getByRole("link", { name: "guest-laptop" }).click();
  await page.getByRole("heading", { name: "Budgets" }).waitFor();
  await fitEveryScreen(page, "me-key");
  for (const { method, path } of await offersOf(page)) {
    expect(mayRequest("user", method, path), `${method} ${path}`).toBe(true);
  }
  await page.locator("summary", { hasText: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByText("has a new secret").waitFor();
  await page.goto(`${testbed.address}/`);
  expect(page.url()).toBe(`${testbed.address}/me`);
  const letters = await page
    .locator("#shortcuts a")
    .evaluateAll((links) => links.map((link) => link.getAttribute("data-key")));
  expect(letters).toEqual(["o"]);
  expect(complaints.filter(isUnexpected)).toEqual([]);
  await page.context().close();
});

test("an admin invites a person, who accepts, on every screen", async () => {
  const admin = await signIn("admin", "/keys");
  await admin.page.getByRole("link", { name: "Invitations" }).click();
  await admin.page.getByLabel("For", { exact: true }).fill("Zoe");
  await admin.page.getByLabel("Team", { exact: true }).fill("crew");
  await admin.page.getByRole("button", { name: "Create invitation" }).click();
  const link = (await admin.page.locator("#the-link").textContent()) ?? "";
  await fitEveryScreen(admin.page, "invitations");
  const { page, complaints } = await openPage(
    browser,
    { width: 360, scheme: "light" },
    { signedIn: false },
  );
  await page.goto(link);
  await fitEveryScreen(page, "invitation");
  await page.getByLabel("Your name").fill("Zoe");
  await page.getByRole("button", { name: "Accept invitation" }).click();
  await page.getByText("The key is shown only once").waitFor();
  expect(await page.getByRole("link", { name: "All keys" }).count()).toBe(0);
  await admin.page.goto(`${testbed.address}/invitations`);
  await admin.page.getByRole("link", { name: "accepted" }).click();
  await admin.page.getByRole("heading", { name: "Zoe has spent" }).waitFor();
  expect([...complaints, ...admin.complaints].filter(isUnexpected)).toEqual([]);
  for (const source of ["gateway", "console"]) {
    await admin.page.goto(`${testbed.address}/audit?source=${source}`);
    await admin.page.getByText("invitation").first().waitFor();
    await fitEveryScreen(admin.page, `audit-${source}`);
  }
  await page.context().close();
  await admin.page.context().close();
});

test("a form that the role may not use leads to a page that says why", async () => {
  const { page } = await signIn("viewer", "/jobs");
  const answer = await page.goto(`${testbed.address}/keys/new`);
  expect(answer?.status()).toBe(403);
  expect(await page.locator("main").innerText()).toContain(
    "This requires the role admin; viewer@example.org (home) has the role viewer.",
  );
  expect(await findViolations(page)).toEqual([]);
  await page.context().close();
});

test("the audit log has the author of a change", async () => {
  const { page } = await signIn("admin", "/users");
  const create = page.getByRole("link", { name: "Create user" });
  // A busy gateway may have answered too late for the first page.
  await expect
    .poll(async () => {
      if (!(await create.isVisible())) {
        await page.reload();
      }
      return create.isVisible();
    })
    .toBe(true);
  await create.click();
  await page.getByLabel("Name", { exact: true }).fill("carl");
  await page.getByRole("button", { name: "Create user" }).click();
  await page.getByRole("status").getByText("created").waitFor();
  const log = await fixture.get("/audit?object_type=user");
  expect(log).toContainEqual(
    expect.objectContaining({
      actor: "admin@example.org (home)",
      action: "created",
      object_id: "carl",
    }),
  );
  await page.context().close();
});
