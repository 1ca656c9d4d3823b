import { Failure } from "../../core/failure.ts";
import type { CouchDocument, Database } from "./database.ts";
import { isEncryptedPath } from "./livesync.ts";

/**
 * Whether the versions of a note can become notes of their own: at least two have content, and the document's id is the path of
 * the note, so that the id of a copy is known. Ids of encrypted vaults are hashes with a secret; ids of settings have a prefix.
 */
export function canKeepBoth(
  document: string,
  path: string | null,
  versions: readonly { readonly deleted: boolean }[],
): boolean {
  return (
    path !== null &&
    !/^\w+:/.test(path) &&
    isIdOf(document, path) &&
    versions.filter(({ deleted }) => !deleted).length > 1
  );
}

/** Ids are in lower case where the vault ignores case; a leading underscore, which the store reserves, gets a slash before it. */
function isIdOf(document: string, path: string): boolean {
  const id = document.toLowerCase();
  const plain = path.toLowerCase();
  return id === plain || id === `/${plain}`;
}

/** The version that keeps the note's name: the one that devices show, else the first that does not delete the note. Throws a Failure. */
export function shownWithText(
  leaves: readonly CouchDocument[],
  winner: string | undefined,
  document: string,
): string {
  const [first] = leaves;
  const path = typeof first?.["path"] === "string" ? first["path"] : "";
  if (isEncryptedPath(path)) {
    throw new Failure(
      `"${document}" is encrypted, so its versions cannot get names here: keep one of them, or merge the note on a device.`,
    );
  }
  if (!canKeepBoth(first?._id ?? "", path, leaves.map(isDeleted))) {
    throw new Failure(
      `the versions of "${document}" cannot be notes of their own: keep one of them, or merge the note on a device.`,
    );
  }
  const withText = leaves.filter((leaf) => leaf["deleted"] !== true);
  const kept = withText.find(({ _rev }) => _rev === winner) ?? withText[0];
  return kept?._rev ?? "";
}

function isDeleted(leaf: CouchDocument) {
  return { deleted: leaf["deleted"] === true };
}

/**
 * Writes each version that has content as a note beside the original, and returns their paths. The name follows from the
 * revision, so that a repeated attempt writes nothing twice. The copies share their chunks with the versions.
 */
export async function copyVersions(
  database: Database,
  versions: readonly CouchDocument[],
): Promise<readonly string[]> {
  const copies = versions
    .filter((leaf) => leaf["deleted"] !== true)
    .map(copyOf);
  for (const { _id: id, ...content } of copies) {
    if ((await database.document(id)) === undefined) {
      await database.put(id, content);
    }
  }
  return copies.map(({ path }) => path);
}

function copyOf(leaf: CouchDocument) {
  const { _id, _rev, _revisions, _conflicts, ...content } = leaf;
  const mark = _rev.split("-")[1]?.slice(0, 6) ?? "";
  return {
    ...content,
    _id: copyName(_id, mark),
    path: copyName(String(content["path"]), mark),
  };
}

/** "Trips/Plan (conflict 3fa2b1).md" */
export function copyName(path: string, mark: string): string {
  const [, stem = path, ending = ""] = /^(.*[^/])(\.[^./]+)$/.exec(path) ?? [];
  return `${stem} (conflict ${mark})${ending}`;
}
