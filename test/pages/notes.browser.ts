import type { Browser, Page } from "playwright-core";
import qrcode from "qrcode";
import type { Device } from "../contract/devices.ts";
import { admin } from "../contract/start-notes.ts";
import { newVaultDevice } from "../contract/vault-device.ts";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { asOperator } from "../supervisor/operator.ts";
import { openSetupUri } from "../../supervisor/vaults/setup-uri.ts";
import {
  clippedTables,
  DESK,
  findViolations,
  openBrowser,
  openPage,
  overflowOf,
  SCREENS,
  showOn,
} from "./browser.ts";
import { startConsoleTestbed, type ConsoleTestbed } from "./console-testbed.ts";
import {
  checkEveryScreen,
  fitEveryScreen,
  takePicture,
} from "./every-screen.ts";
import {
  conflictOf,
  encryptedConflict,
  introduce,
  plainConflict,
  serverOf,
  startNotesConsole,
  type NotesConsole,
} from "./notes-testbed.ts";

const MARKUP = '<img src=x onerror="document.title=1">';
const devices = { laptop: "Laptop", phone: "Phone of Ada" };

let browser: Browser;
let testbed: NotesConsole;
/** The vault with conflicts, as devices access it. */
let family: Device;
const others: ConsoleTestbed[] = [];

beforeAll(async () => {
  browser = await openBrowser();
  testbed = await startNotesConsole();
});
afterEach(async () => {
  for (const other of others.splice(0)) {
    await other.stop();
  }
});
afterAll(async () => {
  await browser.close();
  await testbed.stop();
});

/** CSS pixels of a module of the shown QR code, which has a margin of four modules. */
async function pixelsPerModule(page: Page): Promise<number> {
  const { modules } = qrcode.create(
    (await page.textContent("#setup-uri")) ?? "",
    { errorCorrectionLevel: "L" },
  );
  const image = page.getByAltText("QR code of the Setup URI");
  const width = (await image.boundingBox())?.width ?? 0;
  return width / (modules.size + 8);
}

const list = (...lines: readonly string[]) => lines.join("\n");
const BASE = [
  "# Shopping",
  "",
  "Bread",
  "Milk",
  "Apples",
  "Rice",
  "Salt",
  "Tea",
  "Coffee",
  "Sugar",
  "Honey",
  "Oil",
];
const left = list(...BASE.with(3, "Milk, two bottles"), "Eggs");
const right = list(...BASE.with(3, "Milk, three bottles of it"));

async function openAt(path: string, options = {}) {
  const opened = await openPage(browser, DESK, options);
  await opened.page.goto(`${testbed.address}${path}`);
  return opened;
}

/** The content of the Setup URI on the page. */
async function settingsOn(page: Page) {
  return openSetupUri(
    await page.locator("#setup-uri").innerText(),
    await page.locator("#setup-passphrase").innerText(),
  );
}

test("without vaults, the page creates the first one and shows its Setup URI once", async () => {
  const { page, complaints } = await openAt("/notes");
  expect(await page.textContent("h1")).toBe("No vaults yet.");
  await page.getByLabel("Name", { exact: true }).fill("Work");
  await page.getByLabel("Exclude").fill("(");
  await page.getByLabel("Encrypt the notes").uncheck();
  await page.keyboard.press("Enter");
  const mistake = page.locator("#add-vault-mistake");
  expect(await mistake.innerText()).toContain("is not a valid vault name");
  expect(await page.locator("#add-exclude-mistake").innerText()).toContain(
    "must be a regular expression",
  );
  expect(await findViolations(page)).toEqual([]);
  await takePicture(page, "notes-mistakes");
  await page.getByLabel("Name", { exact: true }).fill("work");
  expect(await page.getByLabel("Encrypt the notes").isChecked()).toBe(false);
  await page.getByLabel("Exclude").fill("^drafts/");
  await page.getByLabel("Name", { exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: 'Vault "work" created.' }).waitFor();
  expect(await settingsOn(page)).toMatchObject({
    couchDB_DBNAME: "work",
    couchDB_URI: testbed.store.url,
    liveSync: true,
    syncIgnoreRegEx: "^drafts/",
  });
  expect(await pixelsPerModule(page)).toBeGreaterThanOrEqual(6);
  await takePicture(page, "notes-setup");
  expect(await findViolations(page)).toEqual([]);
  await page.getByRole("link", { name: "Back to work" }).click();
  await page.getByRole("heading", { name: "Vault work is healthy." }).waitFor();
  expect(await page.content()).not.toContain("obsidian://");
  expect(complaints.filter((each) => !/40[01]/.test(each))).toEqual([]);
  await page.context().close();
});

test("a conflict is shown side by side, and the decision reaches both devices", async () => {
  family = serverOf(
    testbed,
    await testbed.makeVault("family", { e2ee: false }),
  );
  const server = family;
  await introduce(testbed, "family", devices);
  const pair = await conflictOf(server, "Lists/Shopping.md", [left, right]);
  await conflictOf(server, "Plan.md", ["to the sea", "to the hills"]);
  for (const [name, path] of [
    ["notes-usual", "/notes"],
    ["vault-usual", "/notes/family"],
  ] as const) {
    await checkEveryScreen(browser, `${testbed.address}${path}`, {
      name,
      heading: "2 unresolved conflicts in family.",
    });
  }

  const { page } = await openAt("/notes");
  await takePicture(page, "notes");
  await page.goto(`${testbed.address}/notes/family`);
  await takePicture(page, "conflicts");
  const conflict = page.locator(".conflict", { hasText: "Lists/Shopping.md" });
  const marked = await conflict.locator("mark").allInnerTexts();
  expect(marked.join(" ")).toContain("two");
  expect(marked.join(" ")).toContain("three");
  expect(await conflict.locator(".absent").count()).toBe(1);
  await conflict.getByText("Keep newest…").click();
  await conflict.getByRole("button", { name: "Keep newest" }).click();
  await page.getByText("Devices update on their next sync").waitFor();
  expect(await page.textContent("h1")).toBe("1 unresolved conflict in family.");
  for (const device of pair) {
    await device.sync(server);
    const files = await device.files(server);
    expect(files["Lists/Shopping.md"]).toBe(right);
    expect(await device.conflicted()).not.toContain("Lists/Shopping.md");
  }
  await page.context().close();
});

test("the other version is chosen by keyboard alone, without script", async () => {
  const { page } = await openAt("/notes/family", { javaScript: false });
  const [, other] = await page.locator(".compare .changed td").allInnerTexts();
  const choice = page.locator("#keep-1-B");
  await choice.locator("summary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page
    .getByRole("heading", { name: "Vault family is healthy." })
    .waitFor();
  const kept = await fetch(
    `${testbed.address}/api/history?name=notes&limit=1`,
    {
      headers: asOperator,
    },
  );
  expect(await kept.text()).toContain(
    "a conflict in vault family was resolved",
  );
  const device = newVaultDevice(Date.now);
  await device.sync(family);
  expect((await device.files(family))["Plan.md"]).toBe(other);
  await page.context().close();
});

test("both versions of a conflict stay as two notes", async () => {
  await testbed.makeVault("both", { e2ee: false });
  await plainConflict(testbed, "both", "Plan.md", ["to the sea", "home"]);
  const { page } = await openAt("/notes/both");
  await page.getByText("Keep both…").click();
  await page.getByRole("button", { name: "Keep both" }).click();
  await page
    .getByText("plan.md kept, the other as Plan (conflict aaaaaa).md")
    .waitFor();
  expect(await page.textContent("h1")).toBe("Vault both is healthy.");
  await page.context().close();
});

test("an encrypted conflict cannot be read but resolved", async () => {
  await testbed.makeVault("secret");
  await encryptedConflict(testbed, "secret");
  const { page } = await openAt("/notes/secret");
  await page.getByText("encrypted and cannot be read here").waitFor();
  expect(await page.getByText("encrypted", { exact: true }).count()).toBe(2);
  expect(await page.getByText("Keep newest…").count()).toBe(0);
  expect(await page.getByText("Keep both…").count()).toBe(0);
  await takePicture(page, "vault-encrypted");
  await page.getByText("Keep A…").click();
  await page.getByRole("button", { name: "Keep A" }).click();
  await page
    .getByRole("heading", { name: "Vault secret is healthy." })
    .waitFor();
  await page.context().close();
});

test("hostile names of vault, device and note stay texts", async () => {
  const name = `v$()+-${"long".repeat(20)}`;
  const created = await testbed.makeVault(name, { e2ee: false });
  await introduce(testbed, name, {
    one: `${MARKUP} ${"x".repeat(200)}`,
    two: "\u202Eעברית 🔥",
  });
  await conflictOf(
    serverOf(testbed, created),
    `${MARKUP}/${"deep".repeat(80)}.md`,
    [
      `${MARKUP}\n${"w".repeat(3000)}`,
      "</table><script>document.title=1</script>",
    ],
  );
  const { page } = await openPage(browser, { width: 320, scheme: "dark" });
  for (const path of ["/notes", `/notes/${encodeURIComponent(name)}`]) {
    await page.goto(`${testbed.address}${path}`);
    expect(await page.textContent("h1")).toContain(name);
    expect(await page.title()).not.toBe("1");
    expect(await page.locator("img").count()).toBe(0);
    expect(await overflowOf(page)).toBe(0);
    expect(await findViolations(page)).toEqual([]);
    await takePicture(page, `notes-hostile-${path.length}`);
  }
  await page.goto(`${testbed.address}/notes`);
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByText("Keep B…").click();
  await page.getByRole("button", { name: "Keep B" }).click();
  await page.getByText("Devices update on").waitFor();
  await page.context().close();
});

test("after signing in on the way to a vault, the Setup URI needs no further sign-in", async () => {
  const { page } = await openPage(browser, DESK, { signedIn: false });
  await page.goto(`${testbed.address}/notes/work`);
  expect(await page.textContent("h1")).toBe("Sign in");
  await page.getByLabel("Operator password").fill(testbed.operatorPassword);
  await page.keyboard.press("Enter");
  await page.getByText("Connect a device").click();
  expect(await page.getByLabel("Operator password").count()).toBe(0);
  await page.locator("#connect-url").fill("https://Notes.example.org/");
  await page.locator("#connect-mode").selectOption("on-save");
  const answer = page.waitForResponse(/setup-uri$/);
  await page.getByRole("button", { name: "Show Setup URI" }).click();
  expect((await answer).headers()["cache-control"]).toBe("no-store");
  expect(await settingsOn(page)).toMatchObject({
    couchDB_URI: "https://notes.example.org",
    liveSync: false,
  });
  await page.context().close();
});

test("a lost device: the vault gets a new password, and the old one is denied", async () => {
  const before = (await testbed.makeVault("lost", { e2ee: false })).password;
  const { page } = await openAt("/notes/lost");
  await page.getByText("Change vault password").click();
  await page.getByRole("button", { name: "Create new password" }).click();
  await page
    .getByRole("heading", { name: 'Vault "lost" has a new password.' })
    .waitFor();
  const { couchDB_PASSWORD } = await settingsOn(page);
  expect(couchDB_PASSWORD).not.toBe(before);
  const rejected = await fetch(`${testbed.store.url}/lost`, {
    headers: {
      authorization: `Basic ${Buffer.from(`lost:${before}`).toString("base64")}`,
    },
  });
  expect(rejected.status).toBe(401);
  await page.context().close();
});

test("a backup is created, followed and listed with its age; a vault is compacted", async () => {
  const { page } = await openAt("/notes/work");
  await page.getByText("Back up now…").click();
  await page.getByRole("button", { name: "Back up now" }).click();
  await page.waitForURL(/\/jobs\/notes-backup\/\d+$/);
  await page
    .getByRole("heading", { name: "notes-backup succeeded." })
    .waitFor();
  await page.goto(`${testbed.address}/notes`);
  expect(await page.locator(".figures").innerText()).toMatch(
    /Last backup\n.* ago\n1 kept/,
  );
  await page.goto(`${testbed.address}/notes/work`);
  await page.getByText("Compact now…").click();
  await page.getByRole("button", { name: "Compact now" }).click();
  await page.getByRole("heading", { name: "compaction succeeded." }).waitFor();
  expect(await page.locator("main").innerText()).toContain(
    "Vault work compacted",
  );
  await page.goto(`${testbed.address}/jobs`);
  await takePicture(page, "jobs");
  await page.context().close();
});

test("removing a vault requires its name", async () => {
  await testbed.makeVault("old");
  const { page } = await openAt("/notes/old");
  for (const [typed, sentence] of [
    ["work", "nothing was removed"],
    ["old", "Vault old with 0 documents removed."],
  ] as const) {
    await page.getByText("Remove vault…").click();
    await page.getByLabel("Type old to confirm").fill(typed);
    await page.keyboard.press("Enter");
    await page.getByText(sentence).waitFor();
    if (typed === "work") {
      await page.getByText("Go back").click();
    }
  }
  const answer = await page.goto(`${testbed.address}/notes/old`);
  expect(answer?.status()).toBe(404);
  await page.getByText('vault "old" not found').waitFor();
  await page.context().close();
});

test("another site's form removes nothing", async () => {
  const { page } = await openPage(browser, DESK);
  await page.goto("data:text/html,<h1>elsewhere</h1>");
  await page.setContent(
    `<form method="post" action="${testbed.address}/notes/work/remove"><input name="confirm" value="work"><button>go</button></form>`,
  );
  await page.getByRole("button").click();
  await page.waitForLoadState();
  await page.goto(`${testbed.address}/notes/work`);
  expect(await page.textContent("h1")).toBe("Vault work is healthy.");
  await page.context().close();
});

test("a host without notes links to the other one, and an unavailable store is reported", async () => {
  const elsewhere = await startConsoleTestbed({
    services: [],
    env: {
      HEARTH_JOBS: "off",
      NOTES_URL: testbed.store.url,
      HEARTH_PEER_URL: "http://10.0.0.1:4080",
    },
  });
  const away = await startConsoleTestbed({
    services: [],
    env: { NOTES_URL: "http://127.0.0.1:1", NOTES_ADMIN_PASSWORD: "none" },
  });
  others.push(elsewhere, away);
  const { page } = await openPage(browser, DESK);
  await page.goto(`${elsewhere.address}/notes/work`);
  await page.getByText("use the supervisor of its host").waitFor();
  const link = page.getByRole("link", { name: "The notes page" });
  expect(await link.getAttribute("href")).toBe("http://10.0.0.1:4080/notes");
  await page.goto(`${away.address}/notes`);
  expect(await page.textContent("h1")).toBe("The notes store is unavailable.");
  await page.getByText("does not respond (ECONNREFUSED)").waitFor();
  const answer = await page.goto(`${away.address}/notes/work`);
  expect(answer?.status()).toBe(502);
  await page.context().close();
});

test("the store's own page fits every screen and is accessible", async () => {
  await testbed.makeVault("everything-that-belongs-to-the-workshop");
  const { page, complaints } = await openPage(browser, DESK);
  const credentials = btoa(`${admin.name}:${admin.password}`);
  await page.setExtraHTTPHeaders({ authorization: `Basic ${credentials}` });
  await page.goto(`${testbed.store.url}/_utils/`);
  await fitEveryScreen(page, "notes-store");
  for (const screen of SCREENS) {
    await showOn(page, screen);
    expect(await clippedTables(page), screen.name).toEqual([]);
  }
  expect(complaints).toEqual([]);
  await page.context().close();
});
