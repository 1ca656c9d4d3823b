import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRclone } from "../supervisor/rclone.ts";
import { chat, hearth } from "./run-hearth.ts";
import { prepareStack, type Stack } from "./stack.ts";

let first: Stack;
let second: Stack;
let directory: string;

describe.skipIf(!hasRclone())("with rclone", () => {
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "hearth-test-offsite-"));
    mkdirSync(join(directory, "disk"));
    first = await prepareStack();
    second = await prepareStack();
    await first.start();
  }, 180_000);
  afterAll(async () => {
    await hearth(second, "down");
    await first?.remove();
    await second?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  /** A request as admin to the vault that a first start creates. */
  function note(stack: Stack, method: "GET" | "PUT", body?: string) {
    const admin = `admin:${stack.secrets()["notesAdminPassword"]}`;
    return fetch(`${stack.notesUrl}/notes/a.md`, {
      method,
      body: body ?? null,
      headers: { authorization: `Basic ${btoa(admin)}` },
    });
  }

  test("one command restores keys, spend, notes and settings on a new machine from the identity and the target", async () => {
    const before = await hearth(first, "status");
    expect(before.output).toContain("There are no off-site backups.");
    expect(before.output).toContain("hearth offsite setup REMOTE:PATH");
    const page = await fetch(first.supervisorUrl, {
      headers: { ...first.asOperator(), accept: "text/html" },
    });
    expect(await page.text()).toContain("There are no off-site backups.");

    const created = await hearth(
      first,
      "keys",
      "new",
      "--user",
      "me",
      "--json",
    );
    expect(created.code, created.output).toBe(0);
    const key = /"(sk-[\w-]+)"/.exec(created.output)?.[1] ?? "";
    expect((await chat(first, key)).status).toBe(200);
    const written = await note(first, "PUT", `{"type":"plain","data":"kept"}`);
    expect(written.status).toBe(201);

    const target = join(directory, "disk");
    const setup = await hearth(first, "offsite", "setup", target);
    expect(setup.code, setup.output).toBe(0);
    const identity = /AGE-SECRET-KEY-1\w+/.exec(setup.output)?.[0] ?? "";
    for (const words of [
      ["backup", "run"],
      ["notes", "backup"],
      ["offsite", "run"],
    ]) {
      const { code, output } = await hearth(first, ...words);
      expect(code, output).toBe(0);
    }
    const listed = await hearth(first, "offsite", "list", "--json");
    expect(JSON.parse(listed.output)).toHaveLength(2);
    const after = await hearth(first, "status");
    expect(after.output).not.toContain("off-site");

    const keyFile = join(directory, "key.txt");
    writeFileSync(keyFile, `# written down\n${identity}\n`);
    const restored = await hearth(
      second,
      "offsite",
      "restore",
      "--target",
      target,
      "--key-file",
      keyFile,
    );
    expect(restored.code, restored.output).toBe(0);
    expect(restored.output).toContain(
      "Restored from the backup: the master key, the salt key.",
    );
    expect((await chat(second, key)).status).toBe(200);
    for (const name of ["masterKey", "saltKey"]) {
      expect(second.secrets()[name]).toBe(first.secrets()[name]);
    }
    const found = await note(second, "GET");
    expect(await found.json()).toMatchObject({ data: "kept" });
    const [ledger] = await second.ledger<{ calls: string }>(
      "SELECT count(*)::text AS calls FROM spend_log",
    );
    expect(Number(ledger?.calls)).toBeGreaterThan(0);
    // The target is stored, so that the new machine continues to upload.
    expect(readFileSync(join(second.home, "secrets.json"), "utf8")).toContain(
      identity,
    );
    // As after an interruption; only what is left is restored.
    const again = await hearth(second, "offsite", "restore");
    expect(again.code, again.output).toBe(0);
    expect(again.output).toMatch(/The database was already restored from/);
    expect(again.output).toMatch(/vault notes already before/);
  }, 600_000);
});
