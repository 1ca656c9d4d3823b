import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  X509Certificate,
} from "node:crypto";
import { expect, test } from "vitest";
import { DAY_MS } from "../core/duration.ts";
import { openAuthority } from "./certificates.ts";

const caKey = newKey();
const YEAR_MS = 365 * DAY_MS;

function newKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return String(privateKey.export({ type: "pkcs8", format: "pem" }));
}

async function issue(now: number, key = caKey) {
  const { authority, issue } = await openAuthority(key, now);
  const server = await issue("postgres", ["postgres", "10.8.0.1", "fd00::1"]);
  return {
    authority,
    ...server,
    x509: new X509Certificate(server.certificate),
  };
}

test("a certificate names the server, matches its key, and is issued by the authority", async () => {
  const { authority, key, x509 } = await issue(Date.now());
  expect(x509.checkHost("postgres")).toBe("postgres");
  expect(x509.checkHost("redis")).toBeUndefined();
  expect(x509.checkIP("10.8.0.1")).toBe("10.8.0.1");
  expect(x509.checkIP("fd00::1")).toBeDefined();
  expect(x509.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(x509.verify(createPublicKey(authority))).toBe(true);
  expect(x509.ca).toBe(false);
  expect(new X509Certificate(authority).ca).toBe(true);
  const other = await issue(Date.now(), newKey());
  expect(x509.verify(createPublicKey(other.authority))).toBe(false);
});

test("certificates are unchanged within a period; the first run of the next one renews them, a year before they expire", async () => {
  const boundary = Math.ceil(Date.now() / YEAR_MS) * YEAR_MS;
  const last = await issue(boundary - 1);
  const same = await issue(boundary - YEAR_MS);
  expect(same).toMatchObject({
    authority: last.authority,
    certificate: last.certificate,
    key: last.key,
  });
  const next = await issue(boundary);
  expect(next.authority).toBe(last.authority);
  expect(next.key).not.toBe(last.key);
  expect(next.x509.serialNumber).not.toBe(last.x509.serialNumber);
  expect(Date.parse(last.x509.validTo)).toBe(boundary + YEAR_MS);
  expect(Date.parse(next.x509.validFrom)).toBeLessThan(boundary);
});
