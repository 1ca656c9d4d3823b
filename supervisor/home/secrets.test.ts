import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { createHome, type Home } from "./home.ts";
import {
  changeSecrets,
  followSecrets,
  handOver,
  readOrCreateSecrets,
} from "./secrets.ts";

let place: ReturnType<typeof temporaryHome>;
let home: Home;

beforeEach(() => {
  place = temporaryHome();
  home = place.home;
  createHome(home);
});
afterEach(() => place.remove());

test("secrets are created once, random and readable only by their owner", () => {
  const secrets = readOrCreateSecrets(home);
  expect(secrets.masterKey).toMatch(/^sk-[A-Za-z0-9_-]{32}$/);
  expect(new Set(Object.values(secrets)).size).toBe(10);
  expect(statSync(home.secrets).mode & 0o777).toBe(0o600);
  expect(statSync(home.root).mode & 0o777).toBe(0o700);
  expect(readOrCreateSecrets(home)).toEqual(secrets);
});

test("a secret of a newer version is added, the others are unchanged", () => {
  const { backupDbPassword, ...older } = readOrCreateSecrets(home);
  writeFileSync(home.secrets, JSON.stringify({ ...older, note: "mine" }));
  const secrets = readOrCreateSecrets(home);
  expect(secrets).toMatchObject({ ...older, note: "mine" });
  expect(secrets.backupDbPassword).not.toBe(backupDbPassword);
  expect(readOrCreateSecrets(home)).toEqual(secrets);
});

test("lost secrets of a used home are not created again", () => {
  readOrCreateSecrets(home);
  writeFileSync(home.runFile, "{}");
  rmSync(home.secrets);
  expect(() => readOrCreateSecrets(home)).toThrow(
    `${home.secrets} not found; without it, the data in ${home.root} cannot be read: restore it from a copy, or move ${home.root} away to start afresh.`,
  );
});

test("an invalid file is reported with the mistake, never with its content", () => {
  writeFileSync(home.secrets, '{"masterKey": "se cret"}');
  expect(() => readOrCreateSecrets(home)).toThrow(
    `cannot read ${home.secrets} (masterKey: at least 16 letters, digits, - or _): fix it or restore it from a copy.`,
  );
  writeFileSync(home.secrets, "se cret");
  expect(() => readOrCreateSecrets(home)).toThrow(
    /^cannot read .* \(invalid JSON\)/,
  );
});

test("a secret is written to a file without a line end", () => {
  const path = handOver(home, "DATABASE_URL", "postgres://x");
  expect(readFileSync(path, "utf8")).toBe("postgres://x");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("changes of the file apply immediately, including the grace period of the key", () => {
  const old = readOrCreateSecrets(home);
  const followed = followSecrets(home, old);
  expect(followed.previousMasterKey).toBeUndefined();
  const until = "2026-11-22T10:00:00.000Z";
  changeSecrets(home, {
    masterKey: "sk-0123456789abcdef",
    previousMasterKey: old.masterKey,
    previousMasterKeyUntil: until,
    gatewayDbRole: "gateway_b",
  });
  expect(followed).toMatchObject({
    saltKey: old.saltKey,
    masterKey: "sk-0123456789abcdef",
    previousMasterKey: old.masterKey,
    previousMasterKeyUntil: until,
    gatewayDbRole: "gateway_b",
  });
  const later = followSecrets(home, readOrCreateSecrets(home));
  changeSecrets(home, {
    previousMasterKey: undefined,
    previousMasterKeyUntil: undefined,
  });
  expect(later.previousMasterKey).toBeUndefined();
  expect(later.previousMasterKeyUntil).toBeUndefined();
});
