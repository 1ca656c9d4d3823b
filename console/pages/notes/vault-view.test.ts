import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import type { NoteText } from "../../../supervisor/vaults/conflict-texts.ts";
import type { ConflictVersion } from "../../../supervisor/vaults/conflicts.ts";
import {
  viewVault,
  type ConflictFacts,
  type VaultPageFacts,
} from "./vault-view.ts";

const now = Date.UTC(2026, 10, 21, 10, 2);

function version(change: Partial<ConflictVersion> = {}): ConflictVersion {
  return {
    rev: "2-aaaaaaaa",
    wins: true,
    mtime: now - 7_200_000,
    bytes: 12,
    deleted: false,
    ...change,
  };
}

const other = version({
  rev: "3-bbbbbbbb",
  wins: false,
  mtime: now - HOUR_MS,
});

function conflict(
  texts: readonly [NoteText, NoteText],
  versions: readonly ConflictVersion[] = [version(), other],
): ConflictFacts {
  return {
    document: "plan.md",
    path: "Plan.md",
    device: null,
    firstSeen: now - 60_000,
    versions,
    texts: texts.map((text, at) => ({ rev: versions[at]?.rev ?? "", ...text })),
  };
}

function vault(facts: Partial<VaultPageFacts> = {}) {
  const conflicts = facts.conflicts ?? [];
  return viewVault({
    view: {
      vault: "work",
      state: "open",
      url: null,
      user: null,
      documents: 3,
      fileBytes: 1000,
      reclaimableBytes: 0,
      conflicts: conflicts.length,
      seeds: 2,
      compactedAt: now - 60_000,
      backup: null,
      problems: [],
    },
    roster: null,
    closedSince: null,
    encrypted: false,
    conflicts,
    from: 0,
    open: conflicts.length,
    setupFields: [],
    rotateFields: [],
    formOpen: null,
    growth: null,
    timeZone: "UTC",
    now,
    ...facts,
  });
}

const text = (words: string): NoteText => ({ kind: "text", text: words });

function noteOf(texts: readonly [NoteText, NoteText]) {
  const [shown] = vault({ conflicts: [conflict(texts)] }).conflicts;
  return shown?.comparisons[0]?.note;
}

test("a vault without conflicts is healthy", () => {
  expect(vault()).toMatchObject({
    title: "Vault work is healthy.",
    look: "ok",
  });
});

test("two versions are called A and B, the newest is marked, and differences are side by side", () => {
  const view = vault({
    conflicts: [conflict([text("to the sea"), text("to the hills")])],
  });
  expect(view).toMatchObject({
    title: "1 unresolved conflict in work.",
    conflicts: [
      {
        place: 1,
        path: "Plan.md",
        newest: "3-bbbbbbbb",
        since: "1 min ago",
        versions: [
          { letter: "A", edit: 2, wins: true, written: "21 Nov, 08:02" },
          { letter: "B", edit: 3, isNewest: true, size: "12 B" },
        ],
        comparisons: [
          {
            letters: ["A", "B"],
            note: "",
            comparison: { kind: "rows", rows: [{ kind: "changed" }] },
          },
        ],
      },
    ],
  });
});

describe("versions that cannot be compared have a reason", () => {
  test.each<readonly [string, NoteText, NoteText]>([
    ["are encrypted and cannot be read here", text("a"), { kind: "encrypted" }],
    ["is incomplete", { kind: "incomplete" }, text("a")],
    ["too long to compare", { kind: "large" }, text("a")],
    ["are not text", { kind: "binary" }, { kind: "binary" }],
    ["Version B deletes the note.", text("a"), { kind: "deleted" }],
    ["They say the same; only their times differ.", text("a"), text("a")],
  ])("%s", (note, left, right) => {
    expect(noteOf([left, right])).toContain(note);
  });
});

test("without times, or with the same ones, nothing is called newest", () => {
  for (const mtime of [null, version().mtime]) {
    const [shown] = vault({
      conflicts: [
        conflict([text("a"), text("b")], [version(), { ...other, mtime }]),
      ],
    }).conflicts;
    expect(shown?.newest).toBe(null);
  }
});

test("many conflicts have several pages", () => {
  const conflicts = [conflict([text("a"), text("b")])];
  expect(vault({ conflicts, from: 5, open: 9 })).toMatchObject({
    newer: 0,
    older: 6,
    openCount: 9,
    conflicts: [{ place: 6 }],
  });
  expect(vault({ open: "They could not be listed." })).toMatchObject({
    whyNoConflicts: "They could not be listed.",
    older: null,
  });
});
