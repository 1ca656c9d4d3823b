import { hash } from "node:crypto";

/** What the names of functions in chat consist of. */
const NOT_IN_NAMES = /[^a-zA-Z0-9_-]/g;
const MAX_CHARACTERS = 64;
const HASH_CHARACTERS = 8;

/** The name of a function in chat, for one that may be too long or have other characters: the same in every call of a conversation. */
export function functionName(name: string): string {
  const allowed = name.replaceAll(NOT_IN_NAMES, "_");
  if (allowed === name && name.length <= MAX_CHARACTERS) {
    return name;
  }
  const digest = hash("sha256", name);
  const kept = MAX_CHARACTERS - HASH_CHARACTERS - 1;
  return `${allowed.slice(0, kept)}_${digest.slice(0, HASH_CHARACTERS)}`;
}
