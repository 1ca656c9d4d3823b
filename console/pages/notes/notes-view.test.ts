import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import type { JobView } from "../../../supervisor/jobs/runner.ts";
import type { VaultView } from "../../../supervisor/vaults/overview.ts";
import type { Roster } from "../../../supervisor/vaults/roster.ts";
import { viewNotes, type NotesFacts, type VaultFacts } from "./notes-view.ts";

const now = Date.UTC(2026, 10, 21, 10, 2);

const roster: Roster = {
  vault: "work",
  locked: false,
  remarks: [],
  devices: [
    {
      id: "1",
      name: "Laptop",
      pluginVersion: "1.0.16",
      appVersion: "1.10.3",
      lastSeen: now - HOUR_MS,
      behind: 0,
      outdated: false,
      differs: {},
      accepted: true,
    },
    {
      id: "2",
      name: "Phone",
      pluginVersion: "",
      appVersion: "",
      lastSeen: 0,
      behind: 1204,
      outdated: true,
      accepted: false,
      differs: { customChunkSize: { here: 0, preferred: 60 } },
    },
  ],
};

function vault(
  view: Partial<VaultView> = {},
  more: Partial<VaultFacts> = {},
): VaultFacts {
  return {
    view: {
      vault: "work",
      state: "open",
      url: "http://a",
      user: "work",
      documents: 1204,
      fileBytes: 34e6,
      reclaimableBytes: 4e6,
      conflicts: 0,
      seeds: 1,
      compactedAt: null,
      backup: null,
      problems: [],
      ...view,
    },
    roster,
    closedSince: null,
    encrypted: true,
    ...more,
  };
}

function job(name: string, status: "done" | "failed"): JobView {
  return {
    name,
    description: "",
    cron: "30 3 * * *",
    timeZone: "UTC",
    nextAt: now + 17 * HOUR_MS,
    running: null,
    last: {
      id: 1,
      job: name,
      due: null,
      askedBy: null,
      caughtUp: false,
      attempts: 1,
      startedAt: now - 2 * HOUR_MS,
      endedAt: now - 2 * HOUR_MS,
      status,
      text: "no room is left.",
      details: null,
      progress: null,
    },
  };
}

function notes(facts: Partial<NotesFacts> = {}) {
  return viewNotes({
    vaults: [vault()],
    away: null,
    addFields: [],
    adding: false,
    backups: ["2026-11-21T033000Z", "2026-11-20T033000Z"],
    backupJob: job("notes-backup", "done"),
    drillJob: job("notes-drill", "done"),
    timeZone: "UTC",
    now,
    ...facts,
  });
}

test("while the store is unavailable, the page says why and claims nothing of conflicts", () => {
  const { away, figures } = notes({ vaults: [], away: "it is away." });
  expect(away).toBe("It is away.");
  expect(figures).toContainEqual({ name: "Conflicts", value: "–", note: "" });
});

describe("the heading above all vaults", () => {
  test.each<readonly [string, string, Partial<NotesFacts>]>([
    ["All vaults are healthy.", "ok", {}],
    ["No vaults yet.", "none", { vaults: [] }],
    ["The notes store is unavailable.", "bad", { away: "it is away." }],
    [
      "2 unresolved conflicts in work.",
      "warn",
      { vaults: [vault({ conflicts: 2 })] },
    ],
    [
      "1 unresolved conflict in work.",
      "warn",
      { vaults: [vault({ conflicts: 1 })] },
    ],
    [
      "100 or more unresolved conflicts in work.",
      "warn",
      { vaults: [vault({ conflicts: 100 })] },
    ],
    [
      "Vault work is closed: its security seed changed.",
      "bad",
      { vaults: [vault({ state: "closed" }, { closedSince: now - HOUR_MS })] },
    ],
    [
      "The database of vault work is missing.",
      "bad",
      { vaults: [vault({ state: "gone" }, { roster: null })] },
    ],
    [
      "The database of vault work is damaged.",
      "bad",
      { vaults: [vault({ state: "damaged" }, { roster: null })] },
    ],
    [
      "Vault work was written by a newer version of Hearth.",
      "bad",
      { vaults: [vault({ state: "newer" }, { roster: null })] },
    ],
    [
      "The database of vault work cannot be read.",
      "bad",
      { vaults: [vault({ state: "unreadable" }, { roster: null })] },
    ],
    [
      "notes-backup failed: no room is left.",
      "warn",
      { backupJob: job("notes-backup", "failed") },
    ],
    [
      "2 issues need attention.",
      "bad",
      { vaults: [vault({ conflicts: 2 }), vault({ state: "closed" })] },
    ],
  ])("%s", (title, look, facts) => {
    expect(notes(facts)).toMatchObject({ title, look });
  });
});

test("a locked vault is reported with the command to unlock it and the devices that are locked out", () => {
  const remarks = ["A device has locked the vault: fetch on Phone."];
  const locked = { ...roster, locked: true, remarks };
  const view = notes({ vaults: [vault({}, { roster: locked })] });
  expect(view).toMatchObject({ title: remarks[0], look: "warn" });
  expect(view.problems).toMatchObject([
    { command: "hearth notes devices work" },
  ]);
  expect(view.remarks).toEqual([]);
  expect(view.devices.map(({ name, waits }) => [name, waits])).toEqual([
    ["Laptop", false],
    ["Phone", true],
  ]);
});

test("the worst problem comes first, with the command that fixes it", () => {
  const { problems } = notes({
    vaults: [vault({ conflicts: 2 }), vault({ vault: "b", state: "closed" })],
  });
  expect(problems.map(({ command }) => command)).toEqual([
    "hearth notes restore-seed b",
    "hearth notes conflicts work",
  ]);
});

test("a damaged file of a vault is a problem of this vault", () => {
  const text = "escrow/b.json is damaged: restore it from a copy.";
  const damaged = vault({ vault: "b", problems: [text] });
  const { problems } = notes({ vaults: [vault({ conflicts: 2 }), damaged] });
  expect(problems).toMatchObject([{ look: "bad", vault: "b", text }, {}]);
});

test("backup and drill show their last and next run", () => {
  const { figures, subline } = notes();
  expect(figures).toEqual([
    {
      name: "Last backup",
      value: "6 h 32 min ago",
      note: "2 kept, next in 17 h",
    },
    {
      name: "Last restore drill",
      value: "2 h ago",
      note: "next in 17 h",
    },
    { name: "Conflicts", value: "0", note: "no decisions pending" },
    { name: "Devices", value: "2", note: "last seen 1 h ago" },
  ]);
  expect(subline).toBe("1 vault · next backup 22 Nov, 03:02");
  const first = notes({ backups: [], backupJob: undefined });
  expect(first.figures[0]).toMatchObject({ value: "none yet", note: "" });
});

test("a device that syncs two vaults is reported once", () => {
  const outdated = { ...roster, remarks: ["Phone is outdated: update it."] };
  const { remarks } = notes({
    vaults: [vault({}, { roster: outdated }), vault({}, { roster: outdated })],
  });
  expect(remarks).toEqual(["Phone is outdated: update it."]);
});

test("a vault shows its sizes, a device the changes since it connected", () => {
  const { vaults, devices } = notes();
  expect(vaults).toMatchObject([
    {
      name: "work",
      documents: "1,204",
      size: "34.0 MB",
      reclaimable: "4.0 MB",
      seed: "stored in two places",
    },
  ]);
  expect(devices).toMatchObject([
    { name: "Laptop", seen: "1 h ago", changesSince: "none", look: "ok" },
    {
      name: "Phone",
      seen: "never",
      changesSince: "1,204",
      look: "warn",
      plugin: "unknown",
      differs: ["customChunkSize: 0, vault: 60"],
    },
  ]);
});
