import { pbkdf2Sync } from "node:crypto";
import { expect, test } from "vitest";
import { buildCouchIni, hashCouchPassword } from "./couchdb-ini.ts";

test("the administrator's password is hashed in CouchDB's form, with the salt as text", () => {
  const hash = hashCouchPassword("secret", "0123456789abcdef", 1000);
  const key = pbkdf2Sync(
    "secret",
    Buffer.from("0123456789abcdef", "ascii"),
    1000,
    32,
    "sha256",
  );
  expect(hash).toBe(
    `-pbkdf2:sha256-${key.toString("hex")},0123456789abcdef,1000`,
  );
  expect(hashCouchPassword("secret")).not.toBe(hashCouchPassword("secret"));
});

test("the ini file contains the settings that the store and the plugin's checker require", () => {
  const ini = buildCouchIni({
    header: "Written by a test.",
    bindAddress: "127.0.0.1",
    port: 5984,
    uuid: "u",
    cookieSecret: "s",
    trustedProxies: "",
    adminHash: "-pbkdf2:sha256-00,11,1",
  });
  for (const line of [
    "single_node = true",
    "bind_address = 127.0.0.1",
    "port = 5984",
    "require_valid_user = true",
    "require_valid_user_except_for_up = true",
    'WWW-Authenticate = Basic realm="couchdb"',
    "origins = app://obsidian.md,capacitor://localhost,http://localhost",
    "max_document_size = 50000000",
    "max_http_request_size = 4294967296",
    "uuid = u",
    "secret = s",
    "admin = -pbkdf2:sha256-00,11,1",
  ]) {
    expect(ini.split("\n")).toContain(line);
  }
});
