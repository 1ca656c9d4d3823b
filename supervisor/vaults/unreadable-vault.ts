import { CouchRefusal } from "./couch.ts";

const REASONS = ["damaged", "newer", "unreadable"] as const;

/** Why a database that exists cannot be read: its content, its version, or another failure, as of its disk. */
export type Unreadable = (typeof REASONS)[number];

export function isUnreadable(state: string): state is Unreadable {
  return (REASONS as readonly string[]).includes(state);
}

/** Undefined for the error of a database that may be readable. */
export function whyUnreadable(error: unknown): Unreadable | undefined {
  if (!(error instanceof CouchRefusal) || error.status !== 500) {
    return undefined;
  }
  switch (error.code) {
    case "damaged":
      return "damaged";
    case "newer_version":
      return "newer";
    default:
      return "unreadable";
  }
}

/** For the error of a database that exists and cannot be read; throws any other. */
export function asUnreadable(error: unknown): Unreadable {
  const why = whyUnreadable(error);
  if (why === undefined) {
    throw error;
  }
  return why;
}

/** What is wrong, and what to do. */
export function unreadableWords(vault: string, why: Unreadable): string {
  switch (why) {
    case "damaged":
      return `vault "${vault}" is damaged: check the disk (\`dmesg\`), run \`hearth notes remove ${vault}\`, then \`hearth notes restore --vault ${vault}\`.`;
    case "newer":
      return `vault "${vault}" was written by a newer version of Hearth: run \`hearth upgrade\` from a checkout of that version.`;
    case "unreadable":
      return `vault "${vault}" cannot be read: check its disk (\`dmesg\`), and run \`hearth logs notes\` for the reason.`;
  }
}
