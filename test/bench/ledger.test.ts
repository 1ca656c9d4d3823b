import { expect, test } from "vitest";
import { throwAwayDatabase } from "../servers/database.ts";
import { benchLedger } from "./ledger.ts";

test("the totals of a generated ledger agree, and every list and report works on it", async () => {
  const database = await throwAwayDatabase();
  try {
    const { timings, bytesPerRow } = await benchLedger({
      databaseUrl: database.url,
      size: { rows: 6_000, keys: 60, days: 40 },
      rounds: 1,
      onStep: () => undefined,
    });
    for (const { path, bytes } of timings) {
      if (path !== "/notices") {
        expect([path, bytes]).not.toEqual([path, 2]);
      }
    }
    expect(bytesPerRow).toBeGreaterThan(100);
  } finally {
    await database.drop();
  }
});
