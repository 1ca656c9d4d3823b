import { Failure } from "../../core/failure.ts";
import { sizeWords } from "../../core/size.ts";

/** Of the bytes that a drill restores: a disk that it fills also stops devices and calls. */
const ROOM_FACTOR = 1.5;

/** Throws a Failure if restoring `bytes` into a scratch database would nearly fill a disk with `free` bytes. */
export function needDrillRoom(what: string, bytes: number, free: number): void {
  const needed = bytes * ROOM_FACTOR;
  if (free < needed) {
    throw new Failure(
      `the drill restores ${what} into a scratch database, which needs ${sizeWords(needed)} of free disk space, and ${sizeWords(free)} are available: free some space.`,
    );
  }
}
