import { expect, test } from "vitest";
import { killRounds } from "./kill-rounds.ts";

/** More rounds by NOTES_KILL_ROUNDS; a hundred take about two minutes. */
const rounds = Number(process.env.NOTES_KILL_ROUNDS ?? 4);

test(
  `nothing that was acknowledged is lost by kill -9, ${rounds} times in a row`,
  async () => {
    const report = await killRounds(rounds);
    expect(report.lost).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(rounds);
  },
  rounds * 10_000 + 30_000,
);
