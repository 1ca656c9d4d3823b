import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chat, hearth } from "./run-hearth.ts";
import { prepareStack, type Stack } from "./stack.ts";

let first: Stack;
let second: Stack;

beforeAll(async () => {
  first = await prepareStack();
  second = await prepareStack();
  await first.start();
}, 180_000);
afterAll(async () => {
  await first?.remove();
  await second?.remove();
});

const SUMS = `SELECT (SELECT count(*) FROM spend_log)::text AS calls, (SELECT sum(spend) FROM spend_log)::text AS spend,
  (SELECT sum(spend) FROM daily_spend)::text AS daily, (SELECT count(*) FROM spend_check)::text AS differences`;

test("a backup taken under load is restored into an empty stack with its sums and valid keys", async () => {
  const created = await fetch(`${first.gatewayUrl}/key/generate`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${first.secrets()["masterKey"]}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ user_id: "me", max_budget: 1 }),
  });
  const { key } = (await created.json()) as { readonly key: string };
  let calling = true;
  const caller = (async () => {
    while (calling) {
      expect((await chat(first, key)).status).toBe(200);
    }
  })();
  const backup = await hearth(first, "backup", "run");
  calling = false;
  await caller;
  expect(backup.code, backup.output).toBe(0);
  const backups = join(first.home, "backups", "postgres");
  const [name = ""] = readdirSync(backups);

  await second.start();
  cpSync(join(backups, name), join(second.home, "backups", "postgres", name), {
    recursive: true,
  });
  expect((await chat(second, key)).status).toBe(401);
  const refused = await hearth(second, "restore");
  expect([refused.code, refused.output]).toEqual([
    2,
    expect.stringContaining("a restore requires confirmation: add --yes"),
  ]);
  const restored = await hearth(second, "restore", "--yes");
  expect(restored.code, restored.output).toBe(0);

  const manifest = await hearth(second, "jobs", "history", "restore", "--json");
  expect(JSON.parse(manifest.output)).toMatchObject([
    { status: "done", details: { backup: name, keptAs: null } },
  ]);
  const [ledger] = await second.ledger<Record<string, string>>(SUMS);
  expect(Number(ledger?.["calls"])).toBeGreaterThan(0);
  expect(ledger).toMatchObject({
    spend: ledger?.["daily"],
    differences: "0",
  });
  expect((await chat(second, key)).status).toBe(200);
  const check = await hearth(second, "jobs", "run", "ledger-check");
  expect(check.code, check.output).toBe(0);
  const again = await hearth(second, "restore", "--yes");
  expect(again.code, again.output).toBe(0);
  expect(again.output).toContain(`was already restored from ${name}`);
  const later = await hearth(second, "backup", "run", "--json");
  expect(later.code, later.output).toBe(0);
  const refusedNow = await hearth(second, "restore", "--yes");
  expect(refusedNow.code).toBe(1);
  expect(refusedNow.output).toMatch(
    /the database is not empty \(1 rows in keys/,
  );
}, 240_000);

test("reports and the restore drill work on the running stack", async () => {
  const report = await hearth(first, "report", "spend", "--format", "csv");
  expect(report.code, report.output).toBe(0);
  expect(report.output).toContain("model,hearth-echo,hearth-echo,");
  const drill = await hearth(first, "jobs", "run", "restore-drill");
  expect(drill.code, drill.output).toBe(0);
  expect(drill.output).toContain("the ledger adds up to the same sums");
  const health = await hearth(first, "report", "health");
  expect(health.code, health.output).toBe(0);
});
