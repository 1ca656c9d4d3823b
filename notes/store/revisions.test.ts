import fc from "fast-check";
import { expect, test } from "vitest";
import {
  GrowingTree,
  historyOf,
  knownRevisions,
  leavesOf,
  stateOf,
  type RevisionPath,
  type RevisionTree,
} from "./revisions.ts";

/** Adds a path to a tree. */
function graft(
  tree: RevisionTree,
  path: RevisionPath,
  deleted: boolean,
  revsLimit: number,
): { tree: RevisionTree } {
  const growing = new GrowingTree(tree);
  growing.add(path, deleted);
  return growing.prune(revsLimit);
}

const add = (
  tree: RevisionTree,
  start: number,
  ids: readonly string[],
  deleted = false,
): RevisionTree => graft(tree, { start, ids }, deleted, 1000).tree;

test("a second root is a conflict, not the same revision", () => {
  const tree = add(add([], 1, ["a"]), 1, ["b"]);
  expect(stateOf(tree).leaves.map((leaf) => leaf.rev)).toEqual(["1-b", "1-a"]);
});

test("a deleted leaf never wins over one that is not", () => {
  const two = add(add([], 2, ["b", "a"]), 2, ["c", "a"]);
  const tree = add(two, 3, ["d", "c", "a"], true);
  expect(stateOf(tree)).toMatchObject({ winner: "2-b", deleted: false });
});

test("the leaves below an ancestor are found", () => {
  const tree = add(add([], 2, ["b", "a"]), 2, ["c", "a"]);
  expect(leavesOf(tree, "1-a")).toEqual(["2-c", "2-b"]);
  expect(leavesOf(tree, "9-z")).toEqual([]);
});

test("a history longer than the limit loses its oldest revisions", () => {
  const ids = ["e", "d", "c", "b", "a"];
  const { tree } = graft([], { start: 5, ids }, false, 3);
  expect(historyOf(tree, "5-e")).toEqual({ start: 5, ids: ["e", "d", "c"] });
});

test("a path that connects two roots joins them", () => {
  const apart = add(add([], 2, ["b", "a"]), 3, ["c"]);
  for (const path of [
    ["d", "c", "b", "a"],
    ["d", "c", "b"],
  ]) {
    const tree = add(structuredClone(apart), 4, path);
    expect(stateOf(tree).leaves.map((leaf) => leaf.rev)).toEqual(["4-d"]);
    expect(historyOf(tree, "4-d")?.ids).toEqual(["d", "c", "b", "a"]);
  }
});

test("branches pruned at different generations stay one tree", () => {
  const limited = (tree: RevisionTree, start: number, ids: string[]) =>
    graft(tree, { start, ids }, false, 3).tree;
  const forked = limited(limited([], 3, ["x", "b", "a"]), 4, [
    "d",
    "c",
    "b",
    "a",
  ]);
  const tree = limited(forked, 3, ["y", "b"]);
  expect(stateOf(tree).leaves.map((leaf) => leaf.rev)).toEqual([
    "4-d",
    "3-y",
    "3-x",
  ]);
});

test("two devices that exchange the same revisions in any order see the same tree", () => {
  // Branches of one history: each path is some ancestors and a separate end.
  const paths = [
    { start: 3, ids: ["c", "b", "a"] },
    { start: 3, ids: ["x", "b", "a"] },
    { start: 2, ids: ["y", "a"] },
    { start: 4, ids: ["d", "c", "b", "a"] },
    { start: 1, ids: ["root"] },
  ];
  const build = (order: readonly number[]): RevisionTree =>
    order.reduce<RevisionTree>(
      (tree, index) => add(tree, paths[index]!.start, paths[index]!.ids),
      [],
    );
  const inOrder = build([0, 1, 2, 3, 4]);
  fc.assert(
    fc.property(
      fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 }),
      (order) => {
        const tree = build(order);
        expect(stateOf(tree)).toEqual(stateOf(inOrder));
        expect(knownRevisions(tree)).toEqual(knownRevisions(inOrder));
      },
    ),
  );
});

test("a document with very many conflicts takes another revision in a time that grows with their number only", () => {
  const hashOf = (n: number): string => n.toString(16).padStart(32, "0");
  let tree: RevisionTree = Array.from({ length: 30_000 }, (_each, n) => ({
    pos: 1,
    ids: [hashOf(n), {}, []],
  }));
  for (let added = 0; added < 40; added += 1) {
    tree = add(tree, 1, [hashOf(tree.length)]);
  }
  expect(stateOf(tree).leaves).toHaveLength(30_040);
  expect(stateOf(tree).winner).toBe(`1-${hashOf(30_039)}`);
});
