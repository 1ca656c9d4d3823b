// Writes the ini of a notes store in a pod: neither CouchDB's image nor that of Hearth's store can hash a password before its
// server starts.
import { rmSync, writeFileSync } from "node:fs";
import { buildCouchIni, hashAdminPassword } from "../../core/couchdb-ini.ts";
import { readVariable } from "../../core/environment.ts";
import { Failure, textOf } from "../../core/failure.ts";

function required(name: string): string {
  const value = readVariable(name);
  if (value === undefined || value === "") {
    throw new Failure(
      `${name} is not set: set it, or ${name}_FILE to a file with it.`,
    );
  }
  return value;
}

function writeIni(file: string | undefined): void {
  if (file === undefined) {
    throw new Failure("the path of the file is required.");
  }
  const uuid = required("NOTES_UUID");
  const ini = buildCouchIni({
    header: "Written by Hearth.",
    uuid,
    cookieSecret: required("NOTES_COOKIE_SECRET"),
    bindAddress: "0.0.0.0",
    port: 5984,
    trustedProxies: readVariable("NOTES_TRUSTED_PROXIES") ?? "",
    adminHash: hashAdminPassword(required("NOTES_ADMIN_PASSWORD"), uuid),
  });
  // A read-only file of an earlier run cannot be written to.
  rmSync(file, { force: true });
  writeFileSync(file, ini, { mode: 0o440 });
}

try {
  writeIni(process.argv[2]);
} catch (error) {
  process.stderr.write(`hearth: ${textOf(error)}\n`);
  process.exitCode = 1;
}
