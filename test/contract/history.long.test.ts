import { randomInt } from "node:crypto";
import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import { expect, onTestFailed, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import {
  firstKeptInstant,
  keptInstant,
} from "../../notes/store/kept-instants.ts";
import {
  collectChunks,
  findUnused,
} from "../../supervisor/vaults/collection.ts";
import { openCouch } from "../../supervisor/vaults/couch.ts";
import { openHistory } from "../../supervisor/vaults/history-source.ts";
import { NoteCipher } from "../../supervisor/vaults/note-cipher.ts";
import {
  contentOf,
  readVaultAt,
  restoreVault,
} from "../../supervisor/vaults/vault-past.ts";
import { createRandom, type Random } from "../faults/random.ts";
import { remote } from "./devices.ts";
import {
  compactVault,
  DAY,
  MINUTE,
  startNotesWithClock,
} from "./moved-notes.ts";
import { admin, ask } from "./start-notes.ts";
import { newVaultDevice, type Vault } from "./vault-device.ts";
import { encryptionOf } from "./vault-encryption.ts";

/** Number of simulated steps; thirty are half a year. */
const STEPS = Number(process.env["HEARTH_STEPS"] ?? 30);
const STEP_LIMIT_MS = 20_000;
const PASSPHRASE = "not-a-secret-passphrase";
const salt = createPBKDF2Salt();
const saltText = Buffer.from(salt).toString("base64");

const encryption = encryptionOf(PASSPHRASE, salt);

test.each([
  ["plain", undefined],
  ["encrypted (E2EE v2)", encryption],
])(
  "after months of edits by two devices, %s, with compaction, collection and kill -9, every retained version is restored byte for byte",
  { timeout: STEPS * STEP_LIMIT_MS },
  async (name, used) => {
    const seed = Number(process.env["HEARTH_SEED"] ?? randomInt(2 ** 31));
    onTestFailed(() =>
      console.error(`to repeat these edits: HEARTH_SEED=${seed}`),
    );
    const random = createRandom(seed);
    const notes = await startNotesWithClock();
    const { now, advance } = notes;
    try {
      await ask(`${notes.url}/vault`, { method: "PUT" });
      await ask(`${notes.url}/vault/_local/obsidian_livesync_sync_parameters`, {
        method: "PUT",
        json: { protocolVersion: 2, pbkdf2salt: saltText },
      });
      const server = remote(notes.url, "vault", admin);
      const devices = [newVaultDevice(now, used), newVaultDevice(now, used)];
      const [one, two] = devices as [(typeof devices)[0], (typeof devices)[0]];
      const couch = openCouch({
        url: notes.url,
        password: () => admin.password,
      });
      const source = openHistory(couch, "vault");
      const cipher = new NoteCipher("vault", saltText, async () => PASSPHRASE);
      const log: { from: number; to: number; files: Vault }[] = [];
      const startedAt = now();
      let freed = 0;
      let resent = 0;
      /** Contents whose chunks have not been deleted by a device. */
      let texts: string[] = [];
      const filesOfBoth = async (): Promise<Vault[]> => [
        await one.files(server),
        await two.files(server),
      ];
      const settle = async (from: number): Promise<void> => {
        await one.sync(server);
        await two.sync(server);
        if ((await two.conflicted()).length > 0) {
          await two.resolve(server, "newer");
          await two.sync(server);
        }
        await one.sync(server);
        // If a device has reused its local copy of a deleted chunk, the other one must request it first.
        await filesOfBoth().catch(async () => {
          resent += 1;
          await one.sync(server);
          await two.sync(server);
        });
        const [files, others] = await filesOfBoth();
        expect(others).toEqual(files);
        log.push({ from, to: now(), files: files! });
      };
      /** Deletes unused chunks on the server, as an operator does. */
      const collectUnused = async (): Promise<void> => {
        const unused = await findUnused(source, cipher);
        const options = { free: true, now: now() };
        freed += (await collectChunks(couch, "vault", unused, options)).freed
          .count;
      };
      /** Deletes chunks of no current note, as the plugin's collection does. */
      const collect = async (): Promise<void> => {
        const { notes: shown } = await readVaultAt(source, cipher, now());
        const used = new Set(
          [...shown.values()].flatMap(({ note }) =>
            note.deleted ? [] : note.children,
          ),
        );
        const { rows } = await server.allDocs({ startkey: "h:", endkey: "h;" });
        const unused = rows.filter(({ id }) => !used.has(id));
        await server.bulkDocs(
          unused.map(({ id, value }) => ({
            _id: id,
            _rev: value.rev,
            _deleted: true,
          })),
        );
      };
      /** Returns a new text, or sometimes an earlier one. */
      const textFor = (step: number): string => {
        const text =
          texts.length > 0 && random.chance(0.2)
            ? random.pick(texts)
            : `${step} ${contentFrom(random)} äß漢`;
        texts.push(text);
        return text;
      };
      await settle(now());
      for (let step = 0; step < STEPS; step += 1) {
        advance(MINUTE * random.integer(2, step % 3 === 0 ? 4_000 : 120));
        if (step % 5 === 2) {
          advance(31 * DAY);
        }
        const from = now();
        for (const device of devices) {
          const path = `daily/${random.integer(0, 5)}.md`;
          const known = (await device.files(server))[path] !== undefined;
          const other = `moved/${step}.md`;
          if (known && random.chance(0.15)) {
            await device.remove(path);
          } else if (known && random.chance(0.15)) {
            await device.rename(path, other);
          } else {
            // Versions that are replaced within minutes are soon not retained.
            while (random.chance(0.5)) {
              await device.write(path, textFor(step));
              await device.sync(server);
              advance(MINUTE);
            }
            await device.write(path, textFor(step));
          }
        }
        await settle(from);
        if (step % 9 === 4) {
          // The history is thinned once two runs agree on the time.
          await compactVault(notes, "vault");
          advance(HOUR_MS);
          await compactVault(notes, "vault");
        }
        if (step % 3 === 1) {
          await collectUnused();
        }
        if (step % 40 === 11) {
          await collect();
          texts = [];
        }
        if (step % 11 === 7) {
          await ask(`${notes.url}/vault/_compact`, { json: {} });
          const cut = collectUnused().catch(() => undefined);
          await notes.restart();
          await cut;
        }
      }
      expect(freed).toBeGreaterThan(0);
      const end = now();
      const kept = (wanted: number): number => keptInstant(wanted, end);
      const first = firstKeptInstant(log[0]!.to, end);
      const probes = Array.from({ length: STEPS + 10 }, (_each, index) =>
        kept(end - random.integer(0, index % 2 === 0 ? DAY : end - first)),
      ).filter(
        (at) =>
          at >= first && !log.some(({ from, to }) => at >= from && at < to),
      );
      expect(probes.length).toBeGreaterThan(20);
      const filesAt = (at: number): Vault =>
        log.findLast(({ to }) => to <= at)!.files;
      for (const at of probes) {
        const past = await readVaultAt(source, cipher, at);
        const files: Record<string, string> = {};
        for (const { note } of past.notes.values()) {
          if (!note.deleted) {
            files[note.path] = (
              await contentOf(source, cipher, note)
            ).toString();
          }
        }
        expect(files).toEqual(filesAt(at));
      }
      let restores = 0;
      for (const at of probes.slice(0, Math.ceil(STEPS / 5))) {
        advance(MINUTE);
        const moment = keptInstant(at, now());
        if (moment !== at) {
          continue;
        }
        const restored = await restoreVault(source, cipher, {
          at,
          path: undefined,
          now: now(),
        });
        expect(restored.at).toBe(at);
        restores += 1;
        for (const device of devices) {
          await device.sync(server);
          expect(await device.conflicted()).toEqual([]);
          expect(await device.files(server)).toEqual(filesAt(at));
        }
      }
      if (process.env["HEARTH_STEPS"] !== undefined) {
        console.log(
          `seed ${seed}, ${name}: ${STEPS} steps, ${Math.round((end - startedAt) / MINUTE)} minutes simulated, ${probes.length} states read, ${restores} restored, ${freed} chunks deleted, ${resent} resent`,
        );
      }
    } finally {
      await notes.stop();
    }
  },
);

/** Returns a short line, or sometimes more than fits into a chunk. */
function contentFrom(random: Random): string {
  const numbers = random.chance(0.1) ? 22_500 : 5;
  return Array.from({ length: numbers }, () =>
    random.integer(0, 2 ** 32 - 1).toString(16),
  ).join("");
}
