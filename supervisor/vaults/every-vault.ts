import { Failure, textOf } from "../../core/failure.ts";
import type { Couch } from "./couch.ts";
import { Database } from "./database.ts";
import {
  asUnreadable,
  unreadableWords,
  whyUnreadable,
} from "./unreadable-vault.ts";

/** What is wrong with one vault, which is no reason to leave out the others. */
export class VaultFailure extends Failure {}

/**
 * Runs work for vaults in turn; one that no longer exists is left out. Throws a Failure, after all of them, that names those
 * that are unreadable or had a VaultFailure.
 */
export async function forEveryVault(
  couch: Couch,
  vaults: readonly string[],
  work: (vault: string, index: number) => Promise<void>,
): Promise<void> {
  const failures: string[] = [];
  for (const [index, vault] of vaults.entries()) {
    try {
      await work(vault, index);
    } catch (error) {
      const info = await new Database(couch, vault).info().catch(asUnreadable);
      if (info === undefined) {
        continue;
      }
      const why = whyUnreadable(error);
      if (why === undefined && !(error instanceof VaultFailure)) {
        throw error;
      }
      failures.push(
        why === undefined ? textOf(error) : unreadableWords(vault, why),
      );
    }
  }
  if (failures.length > 0) {
    throw new Failure(failures);
  }
}
