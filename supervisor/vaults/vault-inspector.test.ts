import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { CouchRefusal, type Couch } from "./couch.ts";
import type { FailingVault } from "./troubled-vaults.ts";
import { VaultInspector } from "./vault-inspector.ts";
import { openNotesState } from "./notes-state.ts";
import { openEscrow } from "./seed-escrow.ts";
import { createMutex } from "../../core/mutex.ts";
import { missingAlarm } from "./vault-alarms.ts";

let place: ReturnType<typeof temporaryHome>;
/** Persists across restarts of the supervisor. */
let raised: Map<string, Alarm>;
let hung: readonly string[];
let failing: readonly FailingVault[];
/** The `error` of answers about databases. */
let unreadable: string | undefined;

beforeEach(() => {
  place = temporaryHome();
  raised = new Map();
  hung = [];
  failing = [];
  unreadable = undefined;
});
afterEach(() => place.remove());

/** A store without databases. */
const couch: Couch = {
  url: "http://127.0.0.1:5984",
  admin: "admin",
  ask: async () => [],
  find: async (path) => {
    if (path === "/_node/_local/_system") {
      return {
        hung_databases: hung,
        failing_databases: failing,
      };
    }
    if (unreadable !== undefined) {
      throw new CouchRefusal(500, unreadable, "the disk fails", path);
    }
    return undefined;
  },
};

/** An inspector as after a restart of the supervisor. */
function newInspector(store = couch): VaultInspector {
  return new VaultInspector({
    couch: store,
    state: openNotesState(join(place.directory, "state.json"), () => {}),
    escrow: openEscrow(join(place.directory, "escrow")),
    backups: join(place.directory, "backups"),
    alarms: alarmsIn(raised),
    deletionLimits: { least: 5, percent: 20, within: HOUR_MS },
    largeFrom: 2_000_000,
    turns: createMutex(),
    busy: new Set(),
    onLarge: () => {},
    freeBytes: () => 1e8,
    now: Date.now,
  });
}

test("the alarm of a vault that hung ends when it responds, also after a restart", async () => {
  hung = ["family", "work"];
  await newInspector().inspectAll();
  expect([...raised.keys()]).toEqual(["notes-hung:family", "notes-hung:work"]);
  hung = ["work"];
  await newInspector().inspectAll();
  expect([...raised.keys()]).toEqual(["notes-hung:work"]);
});

test.each([
  ["damaged_document", "hearth jobs run notes-drill"],
  ["damaged_file", "hearth notes restore --vault family"],
  ["disk", "its disk fails or is read-only"],
] as const)(
  "a vault that cannot be read or written because of %s raises an alarm that says what to do, until that is an hour ago",
  async (reason, words) => {
    failing = [{ database: "family", reason }];
    await newInspector().inspectAll();
    expect(raised.get("notes-failing:family")).toMatchObject({
      level: "down",
      text: expect.stringContaining(words),
    });
    failing = [];
    await newInspector().inspectAll();
    expect([...raised.keys()]).toEqual([]);
  },
);

test("the alarm of a failing vault names all its failures", async () => {
  failing = [
    { database: "family", reason: "damaged_file" },
    { database: "family", reason: "disk" },
  ];
  await newInspector().inspectAll();
  const text = raised.get("notes-failing:family")?.text;
  expect(text).toContain("is damaged: check the disk");
  expect(text).toContain("its disk fails or is read-only");
});

test("the alarm of a missing database lasts across a restart", async () => {
  const state = openNotesState(join(place.directory, "state.json"), () => {});
  state.change("family", { member: "family" });
  const gone = missingAlarm("family");
  raised.set(gone.fingerprint, gone);
  await newInspector().inspectAll();
  expect([...raised.keys()]).toEqual(["notes-gone:family"]);
});

test.each([
  [
    "newer_version",
    "down",
    "was written by a newer version of Hearth: run `hearth upgrade`",
  ],
  ["damaged", "down", "is damaged: check the disk"],
  ["internal_error", "warning", "the disk fails"],
] as const)(
  "the alarm of a vault that answers 500 %s says what to do",
  async (error, level, words) => {
    const state = openNotesState(join(place.directory, "state.json"), () => {});
    state.change("family", { member: "family" });
    const exists = { ...couch, ask: async () => ["family"] };
    unreadable = error;
    await newInspector(exists).inspectAll();
    expect(raised.get("notes-look:family")).toMatchObject({
      level,
      text: expect.stringContaining(words),
    });
  },
);
