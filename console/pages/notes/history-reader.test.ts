import { expect, test } from "vitest";
import type { HistorySource } from "../../../supervisor/vaults/history-source.ts";
import { readHistory } from "./history-reader.ts";

test("a time before the history is answered with its start, in the zone of the page", async () => {
  const from = Date.UTC(2026, 10, 21, 9, 0, 5);
  const source: Partial<HistorySource> = {
    summary: async () => ({
      from,
      now: from + 60_000,
      versions: 0,
      bytes: 0,
      salt: null,
    }),
  };
  await expect(
    readHistory(
      source as HistorySource,
      "notes",
      { at: from - 1, path: undefined },
      { now: from + 60_000, timeZone: "Europe/Zurich" },
    ),
  ).rejects.toThrow(
    "The history of vault notes starts on 21 Nov, 10:00:05. Choose a later time.",
  );
});
