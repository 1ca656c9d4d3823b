import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readSettings } from "../notes/settings.ts";
import { hashAdminPassword } from "../core/couchdb-ini.ts";
import { scramVerifier } from "../core/scram.ts";
import { containerIni } from "./components/couch-ini.ts";

test("the verifier differs by role and password, and is the same for the same pair", () => {
  expect(scramVerifier("gateway_a", "secret")).toBe(
    "SCRAM-SHA-256$4096:MMFBnY7zZTXpticd7govBg==$Nwo6vh09Rxvs0iES4Qt4lX3ATCpmI3fkEsOUVqsTGqk=:cQ2p4MvGOkZdWA61UG/wFZfLFhuEezOP7gKLVPQlOEA=",
  );
  expect(scramVerifier("gateway_b", "secret")).not.toBe(
    scramVerifier("gateway_a", "secret"),
  );
});

test("the notes server reads the ini correctly", () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-ini-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "10-hearth.ini");
  const uuid = "00112233445566778899aabbccddeeff";
  writeFileSync(
    file,
    containerIni({ uuid, cookieSecret: "cookie", adminPassword: "secret" }),
  );
  const settings = readSettings(file, directory);
  expect(settings.uuid).toBe(uuid);
  expect(settings.maxDocumentSize()).toBe(50_000_000);
  expect(settings.maxRequestSize()).toBe(4_294_967_296);
  expect(settings.origins()).toEqual([
    "app://obsidian.md",
    "capacitor://localhost",
    "http://localhost",
  ]);
  expect(settings.admins()).toEqual({
    admin: hashAdminPassword("secret", uuid),
  });
  expect(hashAdminPassword("secret", uuid)).toMatch(
    /^-pbkdf2:sha256-[0-9a-f]{64},[0-9a-f]{32},50000$/,
  );
});
