import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import type { Json } from "../../test/servers/gateway.ts";
import { createPool } from "../database/pool.ts";
import { auditDone } from "./audit.ts";
import type { Admin } from "./admin-route.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture(
    "proxy_settings: { cache: true, cache_params: { type: memory } }\n",
  );
});

afterAll(() => fixture?.stop());

test.each([
  ["/cache/flushall", "flushed", "cache", { deleted: 0 }],
  ["/config/reload", "reloaded", "configuration", { added: [] }],
])(
  "POST %s is in the audit log, a denied one is not",
  async (path, action, type, after) => {
    const key = await fixture.createKey({});
    expect((await fixture.rejected("POST", path, {}, key)).status).toBe(403);
    const done = await fixture.request("POST", path, {}, undefined, {
      // UTF-8, as the console sends it.
      "x-hearth-changed-by": Buffer.from("Łucja").toString("latin1"),
    });
    expect(done.status).toBe(200);
    const log = await fixture.get(`/audit?object_type=${type}`);
    expect(log).toHaveLength(1);
    expect(log).toMatchObject([{ actor: "Łucja", action, after }]);
  },
);

test("the log is filtered by author, action, object and time, and continues before an entry", async () => {
  const by = (author: string) => ({ "x-hearth-changed-by": author });
  const send = (path: string, body: object, author: string) =>
    fixture.request("POST", path, body, undefined, by(author));
  await send("/team/new", { team_id: "t1" }, "anna@example.org (home)");
  await send("/team/new", { team_id: "t2" }, "bert");
  await send("/team/update", { team_id: "t1", max_budget: 3 }, "bert");
  const found = async (query: Readonly<Record<string, string>>) => {
    const parameters = new URLSearchParams({ object_type: "team", ...query });
    const log = await fixture.get(`/audit?${parameters.toString()}`);
    return (log as unknown as readonly Json[]).map(
      ({ actor, action, object_id: id }) => `${actor} ${action} ${id}`,
    );
  };
  const all = [
    "bert updated t1",
    "bert created t2",
    "anna@example.org (home) created t1",
  ];
  expect(await found({})).toEqual(all);
  expect(await found({ actor: "ANNA@" })).toEqual([all[2]]);
  expect(await found({ action: "created" })).toEqual([all[1], all[2]]);
  expect(await found({ object_id: "t1" })).toEqual([all[0], all[2]]);
  const today = new Date().toISOString().slice(0, 10);
  expect(await found({ end_date: "2020-01-01" })).toEqual([]);
  expect(await found({ start_date: "2020-01-01", end_date: today })).toEqual(
    all,
  );
  const [newest] = (await fixture.get(
    "/audit?object_type=team&page_size=1",
  )) as unknown as readonly Json[];
  expect(await found({ before: String(newest?.["id"]) })).toEqual(all.slice(1));
});

test("changes while the database is unavailable are logged", async () => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(line) });
  const pool = createPool("postgresql://nobody@127.0.0.1:1/none", 1, log);
  const admin = { actor: { name: "anna" }, pool, gateway: { log } };
  await auditDone(admin as unknown as Admin, {
    action: "flushed",
    objectType: "cache",
    objectId: "proxy.cache",
    after: { deleted: 3 },
  });
  await pool.end();
  expect(lines.join()).toMatch(/anna.*flushed.*not in the audit log/);
});
