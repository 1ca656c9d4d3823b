import { createInterface } from "node:readline/promises";
import { UsageError } from "./verb.ts";

export const yesArg = {
  yes: { type: "boolean", description: "Do not ask for confirmation" },
} as const;

/** Throws a UsageError unless the name of what is to be deleted is typed at a terminal. */
export async function askForName(
  what: string,
  name: string,
  consequence: string,
): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new UsageError(
      `deleting ${what} requires confirmation: add --yes, or run the command in a terminal.`,
    );
  }
  const prompt = createInterface({
    input: process.stdin,
    output: process.stderr,
  });
  try {
    const answer = await prompt.question(
      `${consequence} Type its name (${name}) to continue: `,
    );
    if (answer.trim() !== name) {
      throw new UsageError(`the name does not match; ${what} was not deleted.`);
    }
  } finally {
    prompt.close();
  }
}
