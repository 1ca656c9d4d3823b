import { Failure } from "../../core/failure.ts";
import { scratchPrefix } from "./database.ts";

/** There is no vault of the name. */
export class NoSuchVault extends Failure {
  constructor(vault: string) {
    super(
      `there is no vault "${vault}": \`hearth notes list\` shows what there is.`,
    );
  }
}

const longest = 100;

/** The name of a vault is the name of its database. Throws a Failure that says the rule. */
export function checkVaultName(name: string): string {
  if (!/^[a-z][a-z0-9_$()+-]*$/.test(name) || name.length > longest)
    throw new Failure(
      `"${name}" cannot be a vault's name: it begins with a lower-case letter, then lower-case letters, digits and _ $ ( ) + - follow, at most ${longest} in all.`,
    );
  if (name.startsWith(scratchPrefix))
    throw new Failure(
      `"${name}" cannot be a vault's name: names that begin with ${scratchPrefix} are kept for restore drills.`,
    );
  return name;
}
