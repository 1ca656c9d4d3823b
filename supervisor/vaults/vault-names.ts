import { Failure } from "../../core/failure.ts";
import { SCRATCH_PREFIX } from "./database.ts";

/** There is no vault of the name. */
export class NoSuchVault extends Failure {
  constructor(vault: string) {
    super(
      `there is no vault "${vault}": \`hearth notes list\` shows what there is.`,
    );
  }
}

const LONGEST = 100;

/** The name of a vault is the name of its database. Throws a Failure that says the rule. */
export function checkVaultName(name: string): string {
  if (!/^[a-z][a-z0-9_$()+-]*$/.test(name) || name.length > LONGEST) {
    throw new Failure(
      `"${name}" cannot be a vault's name: it begins with a lower-case letter, then lower-case letters, digits and _ $ ( ) + - follow, at most ${LONGEST} in all.`,
    );
  }
  if (name.startsWith(SCRATCH_PREFIX)) {
    throw new Failure(
      `"${name}" cannot be a vault's name: names that begin with ${SCRATCH_PREFIX} are kept for restore drills.`,
    );
  }
  return name;
}
