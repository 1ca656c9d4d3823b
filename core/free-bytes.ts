import { statfsSync } from "node:fs";

/** Bytes available to users on the disk of a path. */
export function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}
