import { Failure } from "../../core/failure.ts";
import { meant } from "../../core/nearest.ts";
import { SCRATCH_PREFIX } from "./database.ts";

/** No vault has this name; a similar one of the known names is suggested. */
export class NoSuchVault extends Failure {
  constructor(vault: string, known: readonly string[] = []) {
    super(
      `vault "${vault}" not found${meant(vault, known)}. Run \`hearth notes list\` to list the vaults.`,
    );
  }
}

/** A name or an address that no vault can have. */
export class InvalidVaultInput extends Failure {}

const MAX_NAME_LENGTH = 100;

/** The name of a vault is the name of its database. Throws the rule. */
export function checkVaultName(name: string): string {
  if (!/^[a-z][a-z0-9_$()+-]*$/.test(name) || name.length > MAX_NAME_LENGTH) {
    throw new InvalidVaultInput(
      `"${name}" is not a valid vault name: it must be a lower-case letter, then lower-case letters, digits and _ $ ( ) + -, at most ${MAX_NAME_LENGTH} characters.`,
    );
  }
  if (name.startsWith(SCRATCH_PREFIX)) {
    throw new InvalidVaultInput(
      `"${name}" is not a valid vault name: names that start with ${SCRATCH_PREFIX} are reserved for restore drills.`,
    );
  }
  return name;
}
