import { stat, statfs, utimes } from "node:fs/promises";
import { z } from "zod";
import { duration, whole } from "../../config/fields.ts";
import { HOUR_MS, inWords } from "../../../core/duration.ts";
import { codeOf } from "../../../core/failure.ts";
import { sizeWords } from "../../../core/size.ts";
import { percent as inPercent } from "../../../core/words.ts";
import { slopeOf } from "../../linear-regression.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  okUnless,
  type ProbeContext,
  type Measured,
  type ProbeResult,
} from "./probe.ts";

export const diskCheck = z.strictObject({
  ...everyCheck({ every: "1m" }),
  kind: z.literal("disk"),
  path: z.string().min(1),
  expect: z
    .strictObject({
      free_above_percent: whole(1, 99).default(10),
      full_not_within: duration.prefault("1d"),
      writable: z.boolean().default(false),
    })
    .prefault({}),
});

/** With less, databases stop. */
const FULL_BELOW_PERCENT = 1;
const TREND_OVER_MS = 6 * HOUR_MS;
/** A trend needs time: one large file must not look like a full disk soon. */
const TREND_FROM_MS = HOUR_MS;

/** Free space (for users, not for root), and when the disk will be full at this rate. */
export async function probeDisk(
  { path, expect }: z.output<typeof diskCheck>,
  { measured, now }: ProbeContext,
): Promise<ProbeResult> {
  const disk = await statfs(path);
  const freeBytes = disk.bavail * disk.bsize;
  const percent = (100 * disk.bavail) / Math.max(1, disk.blocks);
  // Some file systems (btrfs) have no limit of files.
  const filesPercent = disk.files === 0 ? 100 : (100 * disk.ffree) / disk.files;
  const toFull = timeToFull([
    ...measured("free_bytes", now - TREND_OVER_MS),
    { at: now, value: freeBytes },
  ]);
  const text = [
    `${sizeWords(freeBytes)} free, ${inPercent(percent / 100)}`,
    ...(toFull === undefined
      ? []
      : [`full in ${inWords(toFull)} at this rate`]),
  ].join(", ");
  const measures = {
    free_bytes: freeBytes,
    free_percent: Math.round(percent * 10) / 10,
  };
  const damage = expect.writable ? await whyNotWritable(path) : undefined;
  if (damage !== undefined) {
    return failing(`${damage}; ${text}`, measures);
  }
  if (percent < FULL_BELOW_PERCENT || filesPercent < FULL_BELOW_PERCENT) {
    return failing(
      percent < FULL_BELOW_PERCENT
        ? text
        : `no more files can be created; ${text}`,
      measures,
    );
  }
  return okUnless(
    [
      percent < expect.free_above_percent &&
        `less than ${expect.free_above_percent} % is free`,
      filesPercent < expect.free_above_percent &&
        `only ${inPercent(filesPercent / 100)} of its inodes are free`,
      toFull !== undefined &&
        toFull < expect.full_not_within &&
        `it will be full within ${inWords(expect.full_not_within)}`,
    ],
    text,
    measures,
  );
}

/**
 * Sets the times of the path to what they are. That is rejected after an error of the disk, unlike a question for permissions
 * (access), which ext4 still answers with yes.
 */
export async function whyNotWritable(
  path: string,
): Promise<string | undefined> {
  try {
    const { atime, mtime } = await stat(path);
    await utimes(path, atime, mtime);
    return undefined;
  } catch (error) {
    switch (codeOf(error)) {
      case "EROFS":
        return "its file system is read-only: check the disk (`dmesg`)";
      case "EIO":
        return "it cannot be written (EIO): check the disk (`dmesg`)";
      default:
        // The path may belong to another user, or have been removed.
        return undefined;
    }
  }
}

/**
 * Milliseconds until nothing is left, by linear regression; undefined without a steady decrease (it rises, or R² is below
 * one half).
 */
export function timeToFull(points: readonly Measured[]): number | undefined {
  const first = points[0];
  const last = points.at(-1);
  if (
    first === undefined ||
    last === undefined ||
    last.at - first.at < TREND_FROM_MS
  ) {
    return undefined;
  }
  const slope = slopeOf(points);
  return slope === undefined || slope >= 0 ? undefined : last.value / -slope;
}
