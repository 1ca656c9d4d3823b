import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
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

test("changes while the database is unavailable are logged", async () => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(line) });
  const pool = createPool("postgresql://nobody@127.0.0.1:1/none", 1, log);
  const admin = { actor: { name: "anna" }, pool, gateway: { log } };
  await auditDone(
    admin as unknown as Admin,
    "flushed",
    "cache",
    "proxy.cache",
    { deleted: 3 },
  );
  await pool.end();
  expect(lines.join()).toMatch(/anna.*flushed.*not in the audit log/);
});
