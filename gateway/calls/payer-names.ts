import type { Caller } from "../access/callers.ts";
import { faultOfName, heldName } from "../ledger/names.ts";
import { CallError } from "../http/errors.ts";

/** With the length of names it keeps a call's record within its room in the journal. */
const MOST_TAGS = 32;

/** The tags of a call, each once: those of its key and team, then what it sent, as one or as lists. */
export function payingTags(
  caller: Caller,
  sent: readonly unknown[],
): readonly string[] {
  const own = distinct(sent.flat().filter((tag) => typeof tag === "string"));
  refuseUnholdable("tags", own);
  const tags = distinct([...storedTags(caller), ...own]);
  if (tags.length > MOST_TAGS) {
    throw new CallError(
      "invalid_request",
      `\`tags\` has ${tags.length} entries with those of the key and its team: send at most ${MOST_TAGS} in all.`,
      { param: "tags" },
    );
  }
  return tags;
}

/** Throws 400 for names that the ledger cannot hold. */
export function refuseUnholdable(
  field: "user" | "tags",
  names: readonly string[],
): void {
  const fault = names.map(faultOfName).find((fault) => fault !== null);
  if (fault !== undefined) {
    throw new CallError("invalid_request", `\`${field}\` ${fault}.`, {
      param: field,
    });
  }
}

/** What an admin gave: whoever calls can do nothing about a name that the ledger cannot hold. */
function storedTags(caller: Caller): readonly string[] {
  return caller.kind === "key"
    ? [...caller.tags, ...(caller.team?.tags ?? [])].map(heldName)
    : [];
}

function distinct(tags: readonly string[]): readonly string[] {
  if (tags.length === 0) {
    return tags;
  }
  const named = tags.map((tag) => tag.trim()).filter((tag) => tag !== "");
  return [...new Set(named)];
}
