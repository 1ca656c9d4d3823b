import type { Reloaded } from "../gateway.ts";

/** The result of a reload by several workers: a mistake that one of them found, else the changes, which are the same in all. */
export function reloadedOf(all: readonly Reloaded[]): Reloaded {
  const result = all.find(({ ok }) => !ok) ?? all[0];
  if (result === undefined) {
    throw new Error("no worker answered");
  }
  return result;
}
