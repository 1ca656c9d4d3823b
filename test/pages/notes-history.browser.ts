import { setTimeout as sleep } from "node:timers/promises";
import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask } from "../contract/start-notes.ts";
import { newVaultDevice } from "../contract/vault-device.ts";
import { encryptionOf } from "../contract/vault-encryption.ts";
import { DESK, openBrowser, openPage } from "./browser.ts";
import { checkEveryScreen, takePicture } from "./every-screen.ts";
import {
  encryptedConflict,
  serverOf,
  startNotesConsole,
  type NotesConsole,
} from "./notes-testbed.ts";

let browser: Browser;
let testbed: NotesConsole;

beforeAll(async () => {
  browser = await openBrowser();
  testbed = await startNotesConsole();
});
afterAll(async () => {
  await browser.close();
  await testbed.stop();
});

async function openAt(path: string, options = {}) {
  const opened = await openPage(browser, DESK, options);
  await opened.page.goto(`${testbed.address}${path}`);
  return opened;
}

/** A time between two writes, in milliseconds. */
async function between(): Promise<string> {
  await sleep(20);
  const now = new Date().toISOString();
  await sleep(20);
  return now;
}

test("a note, then the whole vault, is restored, and the devices follow", async () => {
  const server = serverOf(
    testbed,
    await testbed.makeVault("past", { e2ee: false }),
  );
  const device = newVaultDevice(Date.now);
  await device.write("Trips/Plan.md", "# Plan\nto the sea\nby train");
  await device.write("Same.md", "as ever");
  await device.sync(server);
  const at = await between();
  await device.write("Trips/Plan.md", "# Plan\nto the hills\nby train");
  await device.write("<b>New</b>.md", "later");
  await device.sync(server);

  const differs = `/notes/past/history?at=${encodeURIComponent(at)}`;
  await checkEveryScreen(browser, `${testbed.address}${differs}`, {
    name: "history",
    heading: /^2 files changed since /,
  });
  // Without script: every page works that way.
  const { page } = await openAt("/notes/past", { javaScript: false });
  await takePicture(page, "vault-space");
  expect(await page.locator("#space ~ .card").first().innerText()).toContain(
    "Growth unknown: needs two days",
  );
  await page.getByLabel("Show the vault as it was").fill("in a week");
  await page.getByRole("button", { name: "Show changes" }).click();
  await page.getByText('"in a week" is not a valid time').waitFor();
  const time = page.getByLabel("Time", { exact: true });
  expect(await time.inputValue()).toBe("in a week");
  await time.fill("2 days ago");
  await page.getByRole("button", { name: "Show changes" }).click();
  await page.getByText("Choose a later time.").waitFor();
  await time.fill(at);
  await page.getByRole("button", { name: "Show changes" }).click();
  const rows = page.locator("[aria-label='Changed files'] tbody tr");
  expect(await rows.allInnerTexts()).toEqual([
    expect.stringMatching(/^<b>New<\/b>\.md\s+added/),
    expect.stringMatching(/^Trips\/Plan\.md\s+changed/),
  ]);
  await page.getByRole("link", { name: "Trips/Plan.md" }).click();
  expect(await page.locator(".compare mark").allInnerTexts()).toEqual([
    "sea",
    "hills",
  ]);
  expect(
    await page.locator("[aria-label='Stored versions'] tbody tr").count(),
  ).toBe(2);
  await takePicture(page, "history-note");
  await page.getByText("Restore…").click();
  await page.getByRole("button", { name: "Restore" }).click();
  await page
    .getByText("Trips/Plan.md restored: 1 written, 0 deleted.")
    .waitFor();
  await device.sync(server);
  expect(await device.files(server)).toEqual({
    "Trips/Plan.md": "# Plan\nto the sea\nby train",
    "Same.md": "as ever",
    "<b>New</b>.md": "later",
  });

  for (const [typed, sentence] of [
    ["other", "nothing was restored"],
    ["past", "past restored: 0 written, 1 deleted."],
  ] as const) {
    await page.goto(`${testbed.address}${differs}`);
    await page.getByText("Restore…").click();
    await page.getByLabel("Type past to confirm").fill(typed);
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByText(sentence).waitFor();
  }
  await device.sync(server);
  expect(Object.keys(await device.files(server)).toSorted()).toEqual([
    "Same.md",
    "Trips/Plan.md",
  ]);
  await page.goto(`${testbed.address}${differs}`);
  expect(await page.textContent("h1")).toMatch(/^past is unchanged since /);
  await page.context().close();
});

test("for an encrypted vault the page shows the commands, and nothing is restored without the passphrase", async () => {
  await testbed.makeVault("sealed");
  await encryptedConflict(testbed, "sealed");
  await checkEveryScreen(
    browser,
    `${testbed.address}/notes/sealed/history?path=${encodeURIComponent("It's.md")}`,
    { name: "history-encrypted", heading: /^History of sealed since/ },
  );
  const { page } = await openAt("/notes/sealed/history?path=It%27s.md");
  const options = "sealed 'It'\\''s.md' --at 'yesterday 18:00'";
  expect(await page.locator("main pre").allInnerTexts()).toEqual([
    `hearth notes history ${options} --diff`,
    `hearth notes restore ${options}`,
  ]);
  expect(await page.getByText("Restore…").count()).toBe(0);
  await page.context().close();
});

test("the changes of an encrypted vault are shown after entering the passphrase, which never leaves the browser", async () => {
  const created = await testbed.makeVault("secret");
  const server = serverOf(testbed, created);
  const salt = createPBKDF2Salt();
  await ask(
    `${testbed.store.url}/secret/_local/obsidian_livesync_sync_parameters`,
    {
      method: "PUT",
      json: {
        protocolVersion: 2,
        pbkdf2salt: Buffer.from(salt).toString("base64"),
      },
    },
  );
  const passphrase = created.vaultPassphrase ?? expect.fail();
  const device = newVaultDevice(Date.now, encryptionOf(passphrase, salt));
  await device.write("Trips/Plan.md", "# Plan\nto the sea\nby train");
  await device.sync(server);
  const at = await between();
  await device.write("Trips/Plan.md", "# Plan\nto the hills\nby train");
  await device.write("<b>New</b>.md", "later");
  await device.sync(server);
  for (const poison of ["%=poison", ""]) {
    await ask(`${testbed.store.url}/secret/poison${poison.length}`, {
      method: "PUT",
      json: { type: "plain", path: `/\\:${poison}`, children: [] },
    });
  }

  const path = `/notes/secret/history?at=${encodeURIComponent(at)}`;
  const silent = await openAt(path, { javaScript: false });
  expect(await silent.page.locator("#decrypt").isVisible()).toBe(false);
  await silent.page.context().close();
  await checkEveryScreen(browser, `${testbed.address}${path}`, {
    name: "history-decrypt",
    heading: /^History of secret since/,
  });
  const { page, complaints } = await openAt(path);
  const sent: string[] = [];
  page.on("request", (request) =>
    sent.push(`${request.url()} ${request.postData() ?? ""}`),
  );
  const passphraseField = page.getByLabel("Passphrase of the vault");
  const compare = page.getByRole("button", { name: "Decrypt and compare" });
  await passphraseField.fill("another");
  await compare.click();
  await page.getByText("incorrect passphrase.").waitFor();
  await passphraseField.fill(passphrase);
  await compare.click();
  await page
    .getByText("2 files changed. 2 notes cannot be decrypted.")
    .waitFor();
  expect(await page.locator("#decrypted tbody tr").allInnerTexts()).toEqual([
    expect.stringMatching(/^<b>New<\/b>\.md\s+added/),
    expect.stringMatching(/^Trips\/Plan\.md\s+changed/),
  ]);
  await page.getByRole("link", { name: "Trips/Plan.md" }).click();
  await page.getByText("Trips/Plan.md changed.").waitFor();
  await page.locator("#decrypted .compare").waitFor();
  expect(await page.locator("#decrypted mark").allInnerTexts()).toEqual([
    "to the sea",
    "to the hills",
  ]);
  await takePicture(page, "history-decrypted");
  await page.goto(`${testbed.address}${path}&path=Trips%2FPlan.md`);
  await passphraseField.fill(passphrase);
  await passphraseField.press("Enter");
  await page.getByText("Trips/Plan.md changed.").waitFor();
  await page.locator("#decrypted .compare").waitFor();
  expect(await page.locator("#decrypted mark").count()).toBe(2);
  expect(sent.length).toBeGreaterThan(0);
  expect(sent.join()).not.toContain(passphrase);
  expect(sent.join()).not.toContain("to the sea");
  expect(complaints).toEqual([]);
  await page.context().close();
});
