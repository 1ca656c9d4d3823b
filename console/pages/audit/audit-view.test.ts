import { expect, test } from "vitest";
import { csvOf } from "../../../supervisor/reports/csv.ts";
import { changesIn } from "./audit-changes.ts";
import { auditHref, readAuditChoice } from "./audit-choice.ts";
import type { AuditEntry } from "./audit-reader.ts";
import { csvRows, viewAudit } from "./audit-view.ts";

const AT = Date.UTC(2026, 10, 26, 13);

const ENTRY: AuditEntry = {
  cursor: "7",
  at: Date.UTC(2026, 10, 26, 12),
  author: "anna@example.org (home)",
  action: "updated",
  type: "key",
  object: "laptop",
  id: "f".repeat(64),
  href: "/keys/f",
  changes: ["Budget (USD): 1 → 2"],
};

test("a change is shown by the fields that differ, without stamps and secrets' hashes", () => {
  const before = {
    token: "0f",
    max_budget: 1,
    models: [],
    metadata: { a: 1 },
    updated_at: "x",
  };
  const after = {
    token: "0f",
    max_budget: 2,
    models: null,
    metadata: { a: 2 },
    updated_at: "y",
  };
  expect(changesIn(before, after)).toEqual([
    "Budget (USD): 1 → 2",
    'Metadata: {"a":1} → {"a":2}',
  ]);
  expect(changesIn(null, { ...after, blocked: false })).toEqual([
    "Budget (USD): 2",
    'Metadata: {"a":2}',
  ]);
  expect(changesIn(before, null)).toEqual([]);
  expect(changesIn(null, { note: "x".repeat(500) })[0]).toHaveLength(87);
});

test("fields are named as in forms, and values are readable", () => {
  expect(
    changesIn(
      { blocked: true, rpm_limit: null },
      {
        blocked: false,
        rpm_limit: 100,
        models: ["gpt-mini", "qwen"],
        expires: "2026-12-17T22:29:07.994Z",
        key_type: "default",
      },
    ),
  ).toEqual([
    "Blocked: yes → no",
    "Requests per minute: none → 100",
    "Models: none → gpt-mini, qwen",
    "Expires: none → 2026-12-17 22:29 UTC",
    "Key type: none → default",
  ]);
});

test("the master key is named as an author, and a key by the beginning of its hash", () => {
  const { rows } = viewAudit(
    readAuditChoice({}),
    [ENTRY, { ...ENTRY, author: "default_user_id", type: "team" }],
    2,
    "UTC",
    AT,
  );
  expect(rows.map(({ author, note }) => [author, note])).toEqual([
    [ENTRY.author, "ffffffff…"],
    ["the master key", `${"f".repeat(20)}…`],
  ]);
});

test("one more entry than fits leads to older ones, with the filters kept", () => {
  const choice = readAuditChoice({ author: "anna", from: "2026-11-01" });
  const entries = [ENTRY, { ...ENTRY, cursor: "6" }, { ...ENTRY, cursor: "5" }];
  const view = viewAudit(choice, entries, 2, "UTC", AT);
  expect(view.title).toBe("The last 2 changes.");
  expect(view.rows).toHaveLength(2);
  expect(view.older).toBe("/audit?author=anna&from=2026-11-01&before=6");
  expect(view.csv).toBe("/audit.csv?author=anna&from=2026-11-01");
  const last = viewAudit({ ...choice, before: "6" }, [ENTRY], 2, "UTC", AT);
  expect([last.title, last.older, last.newest]).toEqual([
    "Earlier changes.",
    null,
    "/audit?author=anna&from=2026-11-01",
  ]);
});

test("what is invalid in an address counts as missing", () => {
  expect(
    auditHref(
      readAuditChoice({
        source: "elsewhere",
        from: "2026-13-45",
        until: ["x"],
        author: " anna ",
      }),
    ),
  ).toBe("/audit?author=anna");
});

test("names that look like formulas are text in the file", () => {
  const evil = '=HYPERLINK("http://evil.example")';
  const csv = csvOf(
    csvRows([
      { ...ENTRY, author: "@anna", object: evil, changes: ["-1+2", "b"] },
    ]),
  );
  const [, row = ""] = csv.split("\r\n");
  expect(row).toBe(
    `2026-11-26T12:00:00.000Z,'@anna,updated,key,"'=HYPERLINK(""http://evil.example"")",${ENTRY.id},'-1+2; b`,
  );
});
