import { randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { answersOk } from "../supervisor/checks/http-get.ts";
import { buildCouchIni, hashCouchPassword } from "../core/couchdb-ini.ts";
import { writeDurably } from "../core/durable-file.ts";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import type { Home } from "../supervisor/home/home.ts";
import { explainHearth, plainEnvironment } from "./node-program.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";

/** The embedded notes store, on loopback. */
export function notesService(
  home: Home,
  port: number,
  secrets: Secrets,
): ServiceSpec {
  const address = `http://127.0.0.1:${port}`;
  return {
    name: "notes",
    address,
    port,
    needs: [],
    uses: [],
    prepare: async () => {
      writeNotesIni(home, port, secrets);
      await needFreePort(port, "notes", "HEARTH_NOTES_PORT");
    },
    plan: () => ({
      file: process.execPath,
      args: [
        join(home.project, "notes", "main.ts"),
        "--ini",
        home.notesIni,
        "--port",
        String(port),
      ],
      cwd: home.checkout,
      env: { ...plainEnvironment(home), NOTES_DIR: home.notes },
    }),
    // Without credentials: wrong ones would lock out this address.
    probe: (signal) => answersOk(`${address}/_up`, signal),
    afterUp: async () => {},
    startWithinMs: 30_000,
    stopSignal: "SIGTERM",
    stopWithinMs: 12_000,
    haltSignal: "SIGKILL",
    explain: explainHearth,
  };
}

/** Writes the settings at the first start, later only when port or password changed; id and secret never change. */
function writeNotesIni(home: Home, port: number, secrets: Secrets): void {
  const known = existsSync(home.notesIni)
    ? readFileSync(home.notesIni, "utf8")
    : "";
  const hash = valueOf(known, "admin");
  const text = buildCouchIni({
    header:
      "Written by hearth up. The embedded notes store reads what a CouchDB would read.",
    bindAddress: "127.0.0.1",
    port,
    uuid: valueOf(known, "uuid") ?? randomBytes(16).toString("hex"),
    cookieSecret: valueOf(known, "secret") ?? randomBytes(32).toString("hex"),
    trustedProxies: valueOf(known, "trusted_proxies") ?? "",
    adminHash:
      hash !== undefined && fits(hash, secrets.notesAdminPassword)
        ? hash
        : hashCouchPassword(secrets.notesAdminPassword),
  });
  if (text !== known) {
    writeDurably(home.notesIni, text);
  }
}

/** The settings that are missing although a start wrote them; undefined when none is. */
export function notesIniMistake(ini: string): string | undefined {
  const missing = ["uuid", "secret", "admin", "port"].filter(
    (name) => valueOf(ini, name) === undefined,
  );
  return missing.length === 0 ? undefined : `without ${missing.join(", ")}`;
}

function fits(hash: string, password: string): boolean {
  const [, salt, iterations] = hash.split(",");
  if (salt === undefined || iterations === undefined) {
    return false;
  }
  const expected = Buffer.from(
    hashCouchPassword(password, salt, Number(iterations)),
  );
  const kept = Buffer.from(hash);
  return expected.length === kept.length && timingSafeEqual(expected, kept);
}

function valueOf(ini: string, name: string): string | undefined {
  return new RegExp(`^${name}[ \\t]*=[ \\t]*(\\S.*)$`, "m").exec(ini)?.[1];
}
