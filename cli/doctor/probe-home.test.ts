import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeAndKeepCopyKey } from "../../supervisor/backup/copy-key.ts";
import { writeManifest } from "../../supervisor/backup/manifest.ts";
import { buildCouchIni, hashCouchPassword } from "../../core/couchdb-ini.ts";
import { writeEchoConfig } from "../../embedded/echo.ts";
import { lockHome } from "../../supervisor/home/lock.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { handOver } from "../../supervisor/home/secrets.ts";
import { openHistory } from "../../supervisor/history/history.ts";
import { openNotesState } from "../../supervisor/vaults/notes-state.ts";
import { openEscrow } from "../../supervisor/vaults/seed-escrow.ts";
import {
  nothingRuns,
  writeRunFile,
} from "../../supervisor/runtimes/process/run-file.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { probeHome } from "./probe-home.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
  fill();
});
afterEach(() => place.remove());

function put(path: string, content: string): void {
  const whole = join(place.home.root, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, content);
}

function journalLine(text: string): string {
  const json = JSON.stringify({ opened: text, at: 1 });
  return `${crc32(json).toString(16).padStart(8, "0")} ${json}\n`;
}

/** One file of each kind, written by the same code as in a running stack, except the gateway's files. */
function fill(): void {
  const { home } = place;
  createHome(home);
  openHistory(home.history).close();
  lockHome(home.lock)?.release();
  writeRunFile(home.runFile, nothingRuns);
  openNotesState(
    join(home.root, "notes-state.json"),
    () => {},
  ).recordFirstVault();
  const adminHash = hashCouchPassword("password", "salt", 1);
  put(
    "notes.ini",
    buildCouchIni({
      header: "Written by a test.",
      bindAddress: "127.0.0.1",
      port: 5984,
      uuid: "u",
      cookieSecret: "s",
      trustedProxies: "",
      adminHash,
    }),
  );
  writeEchoConfig(home, 4001);
  makeAndKeepCopyKey(home, 0);
  put("service.env", "# keys\nOPENAI_API_KEY=sk-x\nexport A=b\n\n");
  handOver(home, "PROXY_MASTER_KEY", "sk-x");
  handOver(home, "PROXY_MASTER_KEY_PREVIOUS", "");
  put(
    "vaults/mine.json",
    JSON.stringify({
      vault: "mine",
      url: "http://127.0.0.1:5984",
      user: "mine",
      password: "p",
      connection: "",
      vaultPassphrase: null,
      choices: {},
    }),
  );
  const escrow = openEscrow(join(home.root, "escrow"));
  escrow.write(escrow.read("mine"));
  const vault = join(home.root, "notes", "databases", "mine.sqlite");
  mkdirSync(dirname(vault), { recursive: true });
  const db = new DatabaseSync(vault);
  db.exec("CREATE TABLE documents (id INTEGER); PRAGMA user_version = 1");
  db.close();
  put(
    "journal/000001.jsonl",
    `${journalLine("a")}${journalLine("ä")}\0\0\0${journalLine("c")}torn\n\0\0`,
  );
  put("journal/instance", "00000000-0000-4000-8000-000000000000\n");
  put("backups/postgres/2026-11-21T030000Z/table.gz", "four");
  const sha256 = "0".repeat(64);
  writeManifest(join(home.backups, "postgres", "2026-11-21T030000Z"), {
    format: 1,
    kind: "postgres",
    takenAt: 0,
    files: [{ name: "table.gz", bytes: 4, sha256 }],
  });
  put("logs/gateway.log", "");
  put("reports/spend.html", "");
}

test("an intact home has no problems, also while the stack is running", () => {
  const lock = lockHome(place.home.lock);
  const history = openHistory(place.home.history);
  const findings = probeHome(place.home);
  history.close();
  lock?.release();
  expect(findings).toMatchObject([{ level: "fine" }]);
  expect(findings[0]?.text).toMatch(/^\d\d files checked, none damaged$/);
});

test("files of releases are not data and are not counted", () => {
  const before = probeHome(place.home);
  put("releases/0.1.0-1/supervisor/main.ts", "");
  put("programs/postgres-18/bin/postgres", "");
  expect(probeHome(place.home)).toEqual(before);
});

test("a history of an earlier version is intact before its migration", () => {
  const history = openHistory(place.home.history);
  history.db.exec("DROP TABLE sessions; PRAGMA user_version = 5");
  history.close();
  expect(probeHome(place.home)).toMatchObject([{ level: "fine" }]);
});

test("a missing home has no problems", () => {
  rmSync(place.home.root, { recursive: true });
  expect(probeHome(place.home)).toMatchObject([{ level: "fine" }]);
});

const garbage = "\u0001 garbage".repeat(900);
const DAMAGES: readonly (readonly [string, string, RegExp])[] = [
  ["supervisor.db", garbage, /^hearth down; hearth up --detach/],
  ["supervisor.db", "", /^hearth down; hearth up --detach/],
  ["supervisor.lock", garbage, /^hearth down; rm -r .+; hearth up --detach$/],
  ["journal/lock", garbage, /^hearth down; rm -r .+; hearth up --detach$/],
  ["run.json", "{", /^hearth up --detach/],
  ["run.json", "[]", /^hearth up --detach/],
  ["notes-state.json", "", /^hearth down; hearth up --detach/],
  ["notes.ini", "[couchdb]", /^hearth restart notes/],
  ["echo.yaml", "model_list: [", /^hearth down; hearth up --detach/],
  ["backup-copy-key.json", "{}", /hearth backup key --new/],
  ["service.env", "A=b\nsk-lonely\n", /^write one NAME=value per line/],
  ["handed/PROXY_MASTER_KEY", "", /^hearth down; hearth up --detach/],
  ["vaults/mine.json", "{", /hearth notes rotate mine/],
  ["escrow/mine.json", "{", /from a copy/],
  ["notes/databases/mine.sqlite", garbage, /hearth notes restore/],
  ["journal/000001.jsonl", `bad line\n${journalLine("b")}`, /dmesg/],
  ["journal/instance", "?", /^rm .+; hearth restart gateway$/],
  ["backups/postgres/2026-11-21T030000Z/table.gz", "", /hearth backup run/],
  [
    "backups/postgres/2026-11-21T030000Z/manifest.json",
    "{",
    /take another|hearth backup run/,
  ],
];

test.each(DAMAGES)(
  "a damaged %s (%j) is reported with its fix",
  (path, content, fix) => {
    put(path, content);
    const findings = probeHome(place.home);
    expect(findings).toMatchObject([{ level: "wrong", subject: "files" }]);
    const [finding] = findings;
    const named = path.replace(/table\.gz$/, "manifest.json");
    expect(`${finding?.text} ${finding?.fix}`).toContain(
      relative(process.cwd(), join(place.home.root, named)).startsWith("..")
        ? join(place.home.root, named)
        : named,
    );
    expect(finding?.fix).toMatch(fix);
    expect(JSON.stringify(findings)).not.toContain("sk-");
  },
);

test("a file in place of a directory, and a directory in place of a file, are reported", () => {
  rmSync(join(place.home.root, "run.json"));
  mkdirSync(join(place.home.root, "run.json"));
  expect(probeHome(place.home)).toMatchObject([
    { level: "wrong", text: expect.stringContaining("run.json") as string },
  ]);
});

test.each([
  [2, /newer version of Hearth/, /^run `hearth upgrade`/],
  [0, /it contains no notes/, /hearth notes restore/],
])(
  "a vault's file that the store rejects for its version %i is reported",
  (version, text, fix) => {
    const path = join(place.home.root, "notes", "databases", "mine.sqlite");
    const db = new DatabaseSync(path);
    db.exec(`PRAGMA user_version = ${version}`);
    db.close();
    expect(probeHome(place.home)).toMatchObject([
      {
        level: "wrong",
        text: expect.stringMatching(text) as string,
        fix: expect.stringMatching(fix) as string,
      },
    ]);
  },
);

test("a history that was moved aside is a hint until it is deleted", () => {
  truncateSync(place.home.history, 100);
  openHistory(place.home.history).close();
  expect(probeHome(place.home)).toMatchObject([
    { level: "fine" },
    { level: "hint", fix: expect.stringMatching(/^rm -r /) as string },
  ]);
});

test("many damaged files are counted, not listed", () => {
  for (let count = 0; count < 30; count += 1) {
    put(`vaults/v${count}.json`, "{");
  }
  const findings = probeHome(place.home);
  expect(findings).toHaveLength(21);
  expect(findings.at(-1)?.text).toBe("10 more files cannot be read");
});
