import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { recordRows } from "../../gateway/database/ledger.ts";
import { createPool, type Pool } from "../../gateway/database/pool.ts";
import { ledgerRow } from "../../test/servers/admin.ts";
import { readerUrl, throwAwayDatabase } from "../../test/servers/database.ts";
import { Failure } from "../../core/failure.ts";
import { checkLedger } from "./ledger-check.ts";

const never = new AbortController().signal;
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let pool: Pool;

beforeEach(async () => {
  database = await throwAwayDatabase();
  pool = createPool(database.url, 2, pino({ level: "silent" }));
  const rows = Array.from({ length: 40 }, (_, at) =>
    ledgerRow({ api_key: "a".repeat(64), user_id: `user-${at % 4}` }),
  );
  await recordRows(pool, rows, [], null, "UTC");
});
afterEach(async () => {
  await pool.end();
  await database.drop();
});

const check = () => checkLedger(readerUrl(database.url, "supervisor"), never);

test("a consistent ledger passes, with the role that reads only the report views", async () => {
  expect(await check()).toMatchObject({
    status: "done",
    summary: expect.stringMatching(
      /^\d+ totals and 1 day agree with their rows\.$/,
    ),
  });
});

test.each([
  [
    "a total",
    "UPDATE spend_totals SET spend = spend + 1 WHERE entity = 'user:user-1'",
    /^1 sums of the ledger differ from their rows: total user:user-1 \(all\) is 3\.50, its rows sum to 2\.50\./,
  ],
  [
    "a day",
    "UPDATE daily_spend SET spend = 0 WHERE user_id = 'user-2'",
    /^1 sums of the ledger differ from their rows: day .+ is 7\.50, its rows sum to 10\.00\./,
  ],
  [
    "missing rows",
    "DELETE FROM spend_log",
    /sums of the ledger differ from their rows: .+; and \d+ more\. Compare with GET \/spend\/check/,
  ],
])("%s that was altered is reported", async (_, statement, sentence) => {
  await pool.query(statement);
  const error = await check().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Failure);
  expect(error instanceof Failure ? error.sentences[0] : "").toMatch(sentence);
});

test("an unreachable database is reported", async () => {
  await expect(
    checkLedger("postgres://supervisor@127.0.0.1:1/hearth", never),
  ).rejects.toThrow("Postgres cannot be reached (ECONNREFUSED)");
});
