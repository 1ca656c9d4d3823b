import { join } from "node:path";
import { closedRules, sameRules } from "./access-rules.ts";
import { backupsOf, readHead, type VaultEntry } from "./backup-format.ts";
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
  for (const { name, entry } of backupsOf(backups, kept.vault, now())) {
    const seed =
      entry.instance === instance
        ? await seedIn(join(backups, name), entry)
        : undefined;
    if (seed !== undefined) {
      return {
        ...accepting(kept, seed, instance, now()),
        closed: kept.closed,
      };
    }
  }
  return kept;
}

/** Undefined for a damaged file, which the next drill reports. */
async function seedIn(
  backup: string,
  entry: VaultEntry,
): Promise<Seed | undefined> {
  try {
    const { security, locals } = await readHead(backup, entry);
    // Without the escrow, the backup of a blocked vault contains the seed that it was blocked for.
    return sameRules(security, closedRules)
      ? undefined
      : seedOf(locals.find(({ _id }) => _id === SEED_ID));
  } catch {
    return undefined;
  }
}
