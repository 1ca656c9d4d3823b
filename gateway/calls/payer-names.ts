import type { Caller } from "../access/callers.ts";
import { faultOfName, storableName } from "../ledger/names.ts";
import { invalidParam } from "../http/errors.ts";

/** Together with the length of names it limits the size of a call's record in the journal. */
const MAX_TAGS = 32;
const NONE: readonly string[] = [];

/** The tags of a call, each once: those of its key and team, then those that it sent, single or in lists. */
export function payingTags(
  caller: Caller,
  sent: readonly unknown[],
): readonly string[] {
  const own = sent.every((tags) => tags == null)
    ? NONE
    : distinct(sent.flat().filter((tag) => typeof tag === "string"));
  rejectUnstorable("tags", own);
  const tags = distinct([...storedTags(caller), ...own]);
  if (tags.length > MAX_TAGS) {
    throw invalidParam(
      "tags",
      `has ${tags.length} entries, including those of the key and its team: the maximum is ${MAX_TAGS}.`,
    );
  }
  return tags;
}

/** Throws 400 for names that the ledger cannot store. */
export function rejectUnstorable(
  field: "user" | "tags",
  names: readonly string[],
): void {
  const fault = names.map(faultOfName).find((fault) => fault !== null);
  if (fault !== undefined) {
    throw invalidParam(field, `${fault}.`);
  }
}

/** Tags set by an admin are shortened instead of rejected, as the caller cannot change them. */
function storedTags(caller: Caller): readonly string[] {
  return caller.kind === "key"
    ? [...caller.tags, ...(caller.team?.tags ?? [])].map(storableName)
    : [];
}

function distinct(tags: readonly string[]): readonly string[] {
  if (tags.length === 0) {
    return tags;
  }
  const named = tags.map((tag) => tag.trim()).filter((tag) => tag !== "");
  return [...new Set(named)];
}
