import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isPasswordHash } from "./auth/passwords.ts";
import { readSettings, type Settings } from "./settings.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-settings-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

const hash = (digit: string): string =>
  `-pbkdf2:sha256-${digit.repeat(64)},salt,10`;

function read(lines: readonly string[]): Settings {
  const file = join(directory, "hearth.ini");
  writeFileSync(file, ["[admins]", ...lines].join("\n"));
  return readSettings(file, directory);
}

test("a password that is set survives a restart, as a hash in a file readable by its owner only", async () => {
  await read([`admin=${hash("a")}`]).set("admins", "admin", "not-a-secret");
  const kept = read([`admin=${hash("a")}`]).admins().admin!;
  expect(isPasswordHash(kept)).toBe(true);
  expect(kept).not.toBe(hash("a"));
  expect(statSync(join(directory, "config.json")).mode & 0o777).toBe(0o600);
});

test("an ini changed after that takes precedence", async () => {
  await read([`admin=${hash("a")}`]).set("admins", "admin", "not-a-secret");
  expect(read([`admin=${hash("b")}`]).admins().admin).toBe(hash("b"));
});

test("a removed setting stays removed", async () => {
  const lines = [`admin=${hash("a")}`, `second=${hash("b")}`];
  await read(lines).set("admins", "second", undefined);
  expect(Object.keys(read(lines).admins())).toEqual(["admin"]);
});

test("without a uuid in the ini the server creates and keeps one", () => {
  const { uuid } = read([`admin=${hash("a")}`]);
  expect(uuid).toMatch(/^[0-9a-f]{32}$/);
  expect(read([`admin=${hash("a")}`]).uuid).toBe(uuid);
});

test("a setting that could not be saved does not take effect with the next one", async () => {
  const settings = read([`admin=${hash("a")}`]);
  const obstacle = join(directory, `config.json.${process.pid}.next`);
  mkdirSync(obstacle);
  await expect(settings.set("admins", "eve", hash("e"))).rejects.toThrow();
  rmSync(obstacle, { recursive: true });
  await settings.set("log", "level", "debug");
  expect(settings.get("log", "level")).toBe("debug");
  expect(Object.keys(settings.admins())).toEqual(["admin"]);
});

test.each(["config.json", "server.json"])(
  "a damaged %s is named, with what to do",
  (name) => {
    const file = join(directory, name);
    writeFileSync(file, '{"admins": {');
    expect(() => read([`admin=${hash("a")}`])).toThrow(
      `${file} is damaged; restore it from a copy, or move it away`,
    );
  },
);
