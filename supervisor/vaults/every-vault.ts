import { Failure, textOf } from "../../core/failure.ts";
import { unreadableWords, whyUnreadable } from "./unreadable-vault.ts";

/** What is wrong with one vault, which is no reason to leave out the others. */
export class VaultFailure extends Failure {}

/** Runs work for vaults in turn. Throws a Failure, after all of them, that names those that are unreadable or had a VaultFailure. */
export async function forEveryVault(
  vaults: readonly string[],
  work: (vault: string, index: number) => Promise<void>,
): Promise<void> {
  const failures: string[] = [];
  for (const [index, vault] of vaults.entries()) {
    try {
      await work(vault, index);
    } catch (error) {
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
