import { join } from "node:path";
import { listBackups, rankBackups } from "../backup/manifest.ts";
import { closedRules, sameRules } from "./access-rules.ts";
import { readHead, readNotesManifest } from "./backup-format.ts";
import { SEED_ID, seedOf, type Seed } from "./livesync.ts";
import { accepting, type Escrow } from "./seed-escrow.ts";

interface BackedUpSeedParts {
  /** `backups/notes`. */
  readonly backups: string;
  readonly now: () => number;
}

/**
 * The escrow of a vault, with the seed of the newest backup of the same database where its file was lost: the seed in the
 * database may be one that replaced it.
 */
export async function withBackedUpSeed(
  { backups, now }: BackedUpSeedParts,
  kept: Escrow,
  instance: string,
): Promise<Escrow> {
  if (kept.accepted !== null) {
    return kept;
  }
  for (const name of rankBackups(listBackups(backups), now())) {
    const seed = await seedIn(join(backups, name), kept.vault, instance);
    if (seed !== undefined) {
      return {
        ...accepting(kept, seed, instance, now()),
        closed: kept.closed,
      };
    }
  }
  return kept;
}

/** Undefined for an unreadable backup, which the next drill reports. */
async function seedIn(
  backup: string,
  vault: string,
  instance: string,
): Promise<Seed | undefined> {
  try {
    const entry = readNotesManifest(backup).vaults.find(
      (each) => each.name === vault && each.instance === instance,
    );
    if (entry === undefined) {
      return undefined;
    }
    const { security, locals } = await readHead(backup, entry);
    // Without the escrow, the backup of a blocked vault contains the seed that it was blocked for.
    return sameRules(security, closedRules)
      ? undefined
      : seedOf(locals.find(({ _id }) => _id === SEED_ID));
  } catch {
    return undefined;
  }
}
