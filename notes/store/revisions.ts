import { createHash } from "node:crypto";
import {
  collectLeaves,
  merge,
  rootToLeaf,
  traverseRevTree,
  winningRev,
  type RevisionNode,
  type RevisionTree,
} from "pouchdb-merge";
import { Refusal } from "../refusal.ts";

export type { RevisionTree } from "pouchdb-merge";

/** `3-abc…`: the generation and a hash. */
export interface Revision {
  readonly pos: number;
  readonly hash: string;
}

/** Reads `N-hash`; anything else is rejected with 400. */
export function parseRevision(text: unknown): Revision {
  const match =
    typeof text === "string" ? /^(\d{1,15})-(.+)$/s.exec(text) : null;
  if (match === null || !isHash(match[2]!)) {
    throw invalidRevision();
  }
  return { pos: Number(match[1]), hash: match[2]! };
}

/** CouchDB accepts any text as a hash. Here hashes are written to responses and headers unescaped, so a text that JSON would escape, or DEL, is rejected. */
export function isHash(text: string): boolean {
  return (
    text !== "" &&
    !text.includes("\x7f") &&
    JSON.stringify(text) === `"${text}"`
  );
}

/** The ETag of a revision: headers consist of bytes, which Node.js reads and writes as characters of Latin-1. */
export function etagOf(rev: string): string {
  return `"${Buffer.from(rev).toString("latin1")}"`;
}

/** The revision that an `If-Match` header names. */
export function revisionOfEtag(etag: string): string {
  return Buffer.from(etag.replace(/^"|"$/g, ""), "latin1").toString();
}

export const invalidRevision = (): Refusal =>
  new Refusal("bad_request", "Invalid rev format");

export function revisionText(revision: Revision): string {
  return `${revision.pos}-${revision.hash}`;
}

/** The hash of a new revision: the same change to the same parent gives the same one everywhere, so that devices agree. */
export function newHash(
  deleted: boolean,
  parent: string,
  body: Uint8Array,
): string {
  return createHash("md5")
    .update(`${deleted ? 1 : 0}\n${parent}\n`)
    .update(body)
    .digest("hex");
}

/** The current state of a document, derived from its tree. */
export interface TreeState {
  readonly winner: string;
  readonly deleted: boolean;
  /** All leaves, winner first, then those that are not deleted, each group from the newest to the oldest. */
  readonly leaves: readonly Leaf[];
}

export interface Leaf {
  readonly rev: string;
  readonly deleted: boolean;
}

export function stateOf(tree: RevisionTree): TreeState {
  const winner = winningRev({ rev_tree: tree });
  const leaves = collectLeaves(tree)
    .map((leaf) => ({ rev: leaf.rev, deleted: leaf.opts.deleted === true }))
    .sort(
      (a, b) =>
        Number(b.rev === winner) - Number(a.rev === winner) ||
        Number(a.deleted) - Number(b.deleted) ||
        compareRevisions(b.rev, a.rev),
    );
  return { winner, deleted: leaves[0]!.deleted, leaves };
}

/** Adds a path (newest hash first) to the tree; `stemmed` revisions were pruned from its far end. */
export function graft(
  tree: RevisionTree,
  path: { readonly start: number; readonly ids: readonly string[] },
  deleted: boolean,
  revsLimit: number,
): { tree: RevisionTree; stemmed: readonly string[] } {
  const ids = path.ids.slice(0, path.start);
  let node: RevisionNode = [ids[0]!, deleted ? { deleted: true } : {}, []];
  for (const hash of ids.slice(1)) {
    node = [hash, {}, [node]];
  }
  const added = { pos: path.start - ids.length + 1, ids: node };
  const grown = joined([...tree, added].sort((a, b) => a.pos - b.pos));
  if (grown.every((root) => lengthOf(root) <= revsLimit)) {
    return { tree: grown, stemmed: [] };
  }
  const merged = merge(grown, added, revsLimit);
  return {
    tree: merged.tree.length > 1 ? joined(merged.tree) : merged.tree,
    stemmed: merged.stemmedRevs || [],
  };
}

/** Of the longest branch. */
function lengthOf(root: RevisionTree[number]): number {
  let last = root.pos;
  traverseNodes(root, (pos) => {
    last = Math.max(last, pos);
  });
  return last - root.pos + 1;
}

/**
 * Joins trees that share revisions, as CouchDB does, in place: `merge` leaves two apart when a path connects them, and splits one
 * whose branches are pruned at different generations. A leaf in two trees would be two conflicts. Its time grows with the size of
 * the trees, that of `merge` with the square of the leaves.
 */
function joined(tree: RevisionTree): RevisionTree {
  const known = new Map<string, RevisionNode>();
  const learn = (root: RevisionTree[number]): void =>
    traverseNodes(root, (pos, node) => known.set(`${pos}-${node[0]}`, node));
  // They are sorted by generation.
  return tree.filter((root) => {
    const same = known.get(`${root.pos}-${root.ids[0]}`);
    if (same === undefined) {
      learn(root);
      return true;
    }
    const pairs = [{ pos: root.pos, into: same, from: root.ids }];
    for (const { pos, into, from } of pairs) {
      for (const child of from[2]) {
        const twin = into[2].find(([hash]) => hash === child[0]);
        if (twin === undefined) {
          insertSorted(into[2], child);
          learn({ pos: pos + 1, ids: child });
        } else {
          pairs.push({ pos: pos + 1, into: twin, from: child });
        }
      }
    }
    return false;
  });
}

/** As `merge` orders them. */
function insertSorted(nodes: RevisionNode[], node: RevisionNode): void {
  const at = nodes.findIndex(([hash]) => hash > node[0]);
  nodes.splice(at === -1 ? nodes.length : at, 0, node);
}

function traverseNodes(
  root: RevisionTree[number],
  visit: (pos: number, node: RevisionNode) => void,
): void {
  const nodes = [root];
  for (const { pos, ids } of nodes) {
    visit(pos, ids);
    nodes.push(...ids[2].map((child) => ({ pos: pos + 1, ids: child })));
  }
}

/** The history of one revision, itself first; undefined when it is not in the tree. */
export function historyOf(
  tree: RevisionTree,
  rev: string,
): { start: number; ids: string[] } | undefined {
  const { pos, hash } = parseRevision(rev);
  for (const path of rootToLeaf(tree)) {
    const index = pos - path.pos;
    if (path.ids[index]?.id === hash) {
      const ids = path.ids.slice(0, index + 1).map((node) => node.id);
      return { start: pos, ids: ids.reverse() };
    }
  }
  return undefined;
}

/** All revisions of the tree, with or without a body. */
export function knownRevisions(tree: RevisionTree): Set<string> {
  const revs = new Set<string>();
  traverseRevTree(tree, (_isLeaf, pos, hash) => {
    revs.add(`${pos}-${hash}`);
  });
  return revs;
}

/** The leaves that descend from (or are) the given revision; empty when it is not in the tree. */
export function leavesOf(tree: RevisionTree, rev: string): string[] {
  const { pos, hash } = parseRevision(rev);
  const below = rootToLeaf(tree)
    .filter((path) => path.ids[pos - path.pos]?.id === hash)
    .map((path) => `${path.pos + path.ids.length - 1}-${path.ids.at(-1)!.id}`);
  return stateOf(tree)
    .leaves.map((leaf) => leaf.rev)
    .filter((leaf) => below.includes(leaf));
}

/** Of revisions that are stored, and so valid. */
export function compareRevisions(a: string, b: string): number {
  const generations = Number.parseInt(a) - Number.parseInt(b);
  if (generations !== 0) {
    return generations;
  }
  // The generations are the same text.
  return a < b ? -1 : a > b ? 1 : 0;
}
