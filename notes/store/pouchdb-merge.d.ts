declare module "pouchdb-merge" {
  /** A node: revision hash, its status, its children. */
  export type RevisionNode = [
    hash: string,
    about: { deleted?: boolean; status?: string },
    children: RevisionNode[],
  ];
  export type RevisionTree = { pos: number; ids: RevisionNode }[];
  export function merge(
    tree: RevisionTree,
    path: RevisionTree[number],
    depth: number,
  ): {
    tree: RevisionTree;
    stemmedRevs: string[] | false;
    conflicts: "new_leaf" | "new_branch" | "internal_node";
  };
  export function winningRev(metadata: { rev_tree: RevisionTree }): string;
  export function collectLeaves(
    tree: RevisionTree,
  ): { rev: string; opts: { deleted?: boolean } }[];
  export function rootToLeaf(
    tree: RevisionTree,
  ): { pos: number; ids: { id: string; opts: { deleted?: boolean } }[] }[];
  export function traverseRevTree(
    tree: RevisionTree,
    visit: (isLeaf: boolean, pos: number, hash: string) => void,
  ): void;
}
