import { statfsSync } from "node:fs";

/** Bytes that are free for users on the disk that holds a path. */
export function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}
