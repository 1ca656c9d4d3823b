import { createHash } from "node:crypto";
import { Refusal } from "../refusal.ts";

/** A revision in the form in which PouchDB stores it, so that a tree is stored as it is: hash, state and children, sorted by hash. */
type RevisionNode = [
  hash: string,
  about: { deleted?: boolean },
  children: RevisionNode[],
];

/** All revisions of a document that are known. Several roots are conflicts, or branches whose ancestors were pruned. */
export type RevisionTree = readonly {
  readonly pos: number;
  readonly ids: RevisionNode;
}[];

/** Newest hash first; `start` is its generation. */
export interface RevisionPath {
  readonly start: number;
  readonly ids: readonly string[];
}

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
interface TreeState {
  readonly winner: string;
  readonly deleted: boolean;
  /** All leaves, winner first, then those that are not deleted, each group from the newest to the oldest. */
  readonly leaves: readonly Leaf[];
}

interface Leaf {
  readonly rev: string;
  readonly deleted: boolean;
}

export function stateOf(tree: RevisionTree): TreeState {
  const leaves = nodesOf(tree)
    .filter(({ node }) => isLeaf(node))
    .sort(
      (a, b) =>
        Number(isDeleted(a.node)) - Number(isDeleted(b.node)) ||
        b.pos - a.pos ||
        (a.node[0] < b.node[0] ? 1 : -1),
    )
    .map(({ pos, node }) => ({
      rev: `${pos}-${node[0]}`,
      deleted: isDeleted(node),
    }));
  return { winner: leaves[0]!.rev, deleted: leaves[0]!.deleted, leaves };
}

const isLeaf = (node: RevisionNode): boolean => node[2].length === 0;
const isDeleted = (node: RevisionNode): boolean => node[1].deleted === true;

/** A tree to which paths are added. The time to add one grows with its length only: a request may contain thousands for one document. */
export class GrowingTree {
  readonly #nodes = new Map<string, RevisionNode>();
  readonly #roots = new Map<string, RevisionTree[number]>();

  /** Takes ownership of `tree`. */
  constructor(tree: RevisionTree) {
    for (const { pos, node } of nodesOf(tree)) {
      this.#nodes.set(`${pos}-${node[0]}`, node);
    }
    for (const root of tree) {
      this.#roots.set(`${root.pos}-${root.ids[0]}`, root);
    }
  }

  has(rev: string): boolean {
    return this.#nodes.has(rev);
  }

  isLeaf(rev: string): boolean {
    const node = this.#nodes.get(rev);
    return node !== undefined && isLeaf(node);
  }

  /** Whether an edit may name this revision as its parent. */
  isLiveLeaf(rev: string): boolean {
    const node = this.#nodes.get(rev);
    return node !== undefined && isLeaf(node) && !isDeleted(node);
  }

  /** The newest leaf if all are deleted. */
  deletedWinner(): string | undefined {
    const roots = [...this.#roots.values()];
    const { winner, deleted } = stateOf(roots);
    return deleted ? winner : undefined;
  }

  /** Adds a path; `deleted` describes its newest revision and has no effect on a known one. False if nothing is new. */
  add(path: RevisionPath, deleted: boolean): boolean {
    let pos = path.start;
    let changed = false;
    /** The root that the next revision of the path is the parent of. */
    let root: RevisionNode | undefined;
    for (const [index, hash] of path.ids.slice(0, path.start).entries()) {
      const rev = `${pos}-${hash}`;
      let node = this.#nodes.get(rev);
      if (node === undefined) {
        if (index > 0 && root === undefined) {
          // The known revision before it has another parent.
          break;
        }
        node = [hash, index === 0 && deleted ? { deleted } : {}, []];
        this.#nodes.set(rev, node);
        this.#roots.set(rev, { pos, ids: node });
        changed = true;
      }
      if (root !== undefined) {
        insertSorted(node[2], root);
        this.#roots.delete(`${pos + 1}-${root[0]}`);
        changed = true;
      }
      root = this.#roots.has(rev) ? node : undefined;
      pos -= 1;
    }
    return changed;
  }

  /** The tree without revisions that are `revsLimit` or more generations older than every leaf below them. */
  prune(revsLimit: number): {
    readonly tree: RevisionTree;
    readonly stemmed: readonly string[];
  } {
    return stem(
      [...this.#roots.values()].sort((a, b) => a.pos - b.pos),
      revsLimit,
    );
  }
}

/** Sorted by hash. */
function insertSorted(nodes: RevisionNode[], node: RevisionNode): void {
  let low = 0;
  let high = nodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (nodes[middle]![0] < node[0]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  nodes.splice(low, 0, node);
}

/** Prunes as CouchDB does: of each path from a leaf to its root the newest `revsLimit` revisions are kept. Changes the nodes. */
function stem(
  tree: RevisionTree,
  revsLimit: number,
): { tree: RevisionTree; stemmed: readonly string[] } {
  const nodes = nodesOf(tree);
  const distances = new Map<RevisionNode, number>();
  for (const { node, parent } of nodes.toReversed()) {
    // Children come first, so that only a leaf has none yet.
    const distance = distances.get(node) ?? 0;
    distances.set(node, distance);
    if (parent !== undefined) {
      const known = distances.get(parent.node) ?? Infinity;
      distances.set(parent.node, Math.min(known, distance + 1));
    }
  }
  const keepsParent = (node: RevisionNode): boolean =>
    distances.get(node)! + 1 < revsLimit;
  if (nodes.every(({ node, parent }) => !parent || keepsParent(node))) {
    return { tree, stemmed: [] };
  }
  const before = new Set(tree.map(({ ids }) => ids));
  const roots: RevisionTree[number][] = [];
  const stemmed: string[] = [];
  for (const { pos, node } of nodes) {
    if (distances.get(node)! >= revsLimit) {
      stemmed.push(`${pos}-${node[0]}`);
    } else if (before.has(node) || !keepsParent(node)) {
      roots.push({ pos, ids: node });
    }
    node[2] = node[2].filter(keepsParent);
  }
  return { tree: roots.sort((a, b) => a.pos - b.pos), stemmed };
}

interface Placed {
  readonly pos: number;
  readonly node: RevisionNode;
  readonly parent: Placed | undefined;
}

/** All nodes, parents before their children. */
function nodesOf(tree: RevisionTree): Placed[] {
  const found: Placed[] = tree.map(({ pos, ids }) => ({
    pos,
    node: ids,
    parent: undefined,
  }));
  for (const parent of found) {
    for (const node of parent.node[2]) {
      found.push({ pos: parent.pos + 1, node, parent });
    }
  }
  return found;
}

function find(tree: RevisionTree, rev: string): Placed | undefined {
  const { pos, hash } = parseRevision(rev);
  return nodesOf(tree).find(
    (each) => each.pos === pos && each.node[0] === hash,
  );
}

/** The history of one revision, itself first; undefined when it is not in the tree. */
export function historyOf(
  tree: RevisionTree,
  rev: string,
): { start: number; ids: string[] } | undefined {
  let at = find(tree, rev);
  if (at === undefined) {
    return undefined;
  }
  const start = at.pos;
  const ids: string[] = [];
  for (; at !== undefined; at = at.parent) {
    ids.push(at.node[0]);
  }
  return { start, ids };
}

/** All revisions of the tree, with or without a body. */
export function knownRevisions(tree: RevisionTree): Set<string> {
  return new Set(nodesOf(tree).map(({ pos, node }) => `${pos}-${node[0]}`));
}

/** The leaves that descend from (or are) the given revision, in the order of `stateOf`; empty when it is not in the tree. */
export function leavesOf(tree: RevisionTree, rev: string): string[] {
  const found = find(tree, rev);
  if (found === undefined) {
    return [];
  }
  const below = stateOf([{ pos: found.pos, ids: found.node }]);
  return below.leaves.map((leaf) => leaf.rev);
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
