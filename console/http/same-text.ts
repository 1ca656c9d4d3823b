import { hash, timingSafeEqual } from "node:crypto";

/** Compares hashes, so that timing reveals neither content nor length. */
export function isSameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => hash("sha256", text, "buffer"));
  return (
    left !== undefined && right !== undefined && timingSafeEqual(left, right)
  );
}
