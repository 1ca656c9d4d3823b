import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { killRounds } from "./kill-rounds.ts";
import { clock, expectSame, createVault, syncAll } from "./simulator.ts";
import { admin, ask, startNotes } from "./start-notes.ts";
import { newVaultDevice } from "./vault-device.ts";

/** NOTES_KILL_ROUNDS sets the number of rounds; a hundred take about two minutes. */
const rounds = Number(process.env.NOTES_KILL_ROUNDS ?? 4);

test(
  `no acknowledged write is lost by kill -9, ${rounds} times in a row`,
  async () => {
    const report = await killRounds(rounds);
    expect(report.lost).toEqual([]);
    expect(report.acknowledged).toBeGreaterThanOrEqual(rounds);
  },
  rounds * 10_000 + 30_000,
);

test(
  `devices that sync while the store is killed ${rounds} times end with the same vault and no lost revision`,
  async () => {
    let notes = await startNotes();
    try {
      const server = await createVault(notes.url, "vault", admin);
      const [a, b] = [newVaultDevice(clock), newVaultDevice(clock)];
      const expected: Record<string, string> = {};
      for (let round = 0; round < rounds; round += 1) {
        for (let n = 0; n < 5; n += 1) {
          const [device, path] =
            n % 2 === 0 ? [a, `a${n}.md`] : [b, `b${n}.md`];
          const text = `round ${round} of ${n} `.repeat(3000);
          await device!.write(path!, text);
          expected[path!] = text;
        }
        const syncing = Promise.allSettled([a.sync(server), b.sync(server)]);
        await sleep(Math.random() * 150);
        await notes.kill("SIGKILL");
        await syncing;
        notes = await notes.restart();
      }
      await syncAll(server, a, b);
      await expectSame(server, [a, b], expected);
      for (const { local } of [a, b]) {
        const { rows } = await local.allDocs();
        const wanted = Object.fromEntries(
          rows.map((row) => [row.id, [row.value.rev]]),
        );
        const missing = await ask(`${notes.url}/vault/_revs_diff`, {
          json: wanted,
        });
        expect(await missing.json()).toEqual({});
      }
    } finally {
      await notes.stop();
    }
  },
  rounds * 10_000 + 60_000,
);
