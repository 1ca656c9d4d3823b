import pg from "pg";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { superuserUrl } from "../../test/servers/database.ts";
import { LEDGER_LOCK } from "../database/totals.ts";

let fixture: AdminFixture;
/** A transaction of someone else. */
let other: pg.Client;

beforeAll(async () => {
  fixture = await startAdminFixture();
});
beforeEach(async () => {
  other = new pg.Client(superuserUrl(fixture.databaseUrl));
  await other.connect();
});
afterEach(() => other.end());
afterAll(() => fixture?.stop());

const lockUser = (userId: string) =>
  other.query("SELECT FROM users WHERE user_id = $1 FOR UPDATE", [userId]);

/** Resolves when a statement of the gateway waits for a lock. */
async function untilOneWaits(): Promise<void> {
  const waiting = async () => {
    // Within a transaction, Postgres answers what it answered first.
    await other.query("SELECT pg_stat_clear_snapshot()");
    const found = await other.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hearth-gateway' AND wait_event_type = 'Lock'",
    );
    return found.rowCount;
  };
  await expect.poll(waiting).toBeGreaterThan(0);
}

test("a change that waits for a row does not hold up the ledger", async () => {
  await fixture.post("/user/new", { user_id: "busy", auto_create_key: false });
  await other.query("BEGIN");
  await lockUser("busy");
  const created = fixture.post("/team/new", {
    team_id: "of-busy",
    max_budget: 1,
    budget_duration: "1d",
    members_with_roles: [{ role: "user", user_id: "busy" }],
  });
  await untilOneWaits();
  const free = await other.query<{ locked: boolean }>(
    `SELECT pg_try_advisory_xact_lock(${LEDGER_LOCK}) AS locked`,
  );
  await other.query("COMMIT");
  await created;
  expect(free.rows).toEqual([{ locked: true }]);
});

test("a change that deadlocked with another one is made once that is over", async () => {
  for (const user_id of ["first", "second"]) {
    await fixture.post("/user/new", { user_id, auto_create_key: false });
  }
  await other.query("BEGIN");
  await lockUser("second");
  const deleted = fixture.post("/user/delete", {
    user_ids: ["first", "second"],
  });
  await untilOneWaits();
  // Postgres ends the one that has waited longer.
  await lockUser("first");
  await other.query("COMMIT");
  expect(await deleted).toBe(2);
});

test("slow reports of one user leave connections for other requests, and are all answered", async () => {
  const { key } = await fixture.post("/user/new", { user_id: "curious" });
  await other.query("BEGIN");
  await other.query("LOCK TABLE spend_log IN ACCESS EXCLUSIVE MODE");
  const reports = Array.from({ length: 12 }, () =>
    fixture.request("GET", "/spend/logs", undefined, String(key)),
  );
  await untilOneWaits();
  await fixture.post("/key/generate", {});
  await other.query("COMMIT");
  const statuses = (await Promise.all(reports)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
});
