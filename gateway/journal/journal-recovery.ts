import fs from "node:fs";
import { compareMarks } from "./journal-mark.ts";
import type { JournalLog, JournalMark } from "./journal-types.ts";
import { clearBytes, listSegments, syncData, type Segment } from "./segment.ts";
import { scanSegment, type SegmentScan } from "./segment-scan.ts";

export interface Recovered {
  /** Segments that are entirely in the ledger, oldest first, with the time of their last change in ms since the epoch. */
  readonly kept: readonly {
    readonly segment: Segment;
    readonly touchedAt: number;
  }[];
  /** Oldest first; the active one and those after it are open for writing. */
  readonly segments: readonly Segment[];
  /** Where the next line goes: the last segment with lines. 0 in an empty directory. */
  readonly active: number;
  readonly intents: number;
  /** The acknowledged mark, moved to the end of the lines where a power cut lost later ones. */
  readonly mark: JournalMark | null;
}

/**
 * Checks every line of previous processes that the ledger may lack, cuts a torn end, and reports damage.
 * Lines are never changed or moved.
 */
export async function recoverSegments(
  directory: string,
  acknowledged: JournalMark | null,
  log: JournalLog,
): Promise<Recovered> {
  const kept: Recovered["kept"][number][] = [];
  const segments: Segment[] = [];
  const scans: SegmentScan[] = [];
  const files = await listSegments(directory);
  for (const file of files) {
    if (file.number < (acknowledged?.from ?? 0) && file !== files.at(-1)) {
      const { size, mtimeMs } = await fs.promises.stat(file.path);
      // Lines end before the zeros, which readers skip.
      kept.push({
        segment: { ...file, size, end: size, fd: null },
        touchedAt: mtimeMs,
      });
      continue;
    }
    const bytes = await fs.promises.readFile(file.path);
    const scan = scanSegment(bytes, countFrom(file.number, acknowledged));
    scans.push(scan);
    segments.push({ ...file, size: bytes.length, end: scan.end, fd: null });
  }
  const written = scans.findLastIndex(
    (scan) => scan.end > 0 || scan.torn.bytes > 0,
  );
  const activeIndex = Math.max(0, written);
  for (const segment of segments.slice(activeIndex)) {
    segment.fd = fs.openSync(segment.path, "r+");
  }
  for (const [index, segment] of segments.entries()) {
    const scan = scans[index] as SegmentScan;
    report(segment, scan, index === activeIndex, log);
  }
  const active = segments[activeIndex];
  const torn = scans[activeIndex]?.torn;
  if (active?.fd != null && torn !== undefined && torn.bytes > 0) {
    clearBytes(active.fd, torn.offset, torn.offset + torn.bytes);
    await syncData(active.fd);
  }
  return {
    kept,
    segments,
    active: active?.number ?? 0,
    intents: scans.reduce((sum, scan) => sum + scan.intents, 0),
    mark: withinLines(acknowledged, active),
  };
}

/** Calls of earlier lines are in the ledger, except the few that were in flight at the mark. */
function countFrom(segment: number, mark: JournalMark | null): number {
  if (mark === null || segment > mark.segment) {
    return 0;
  }
  return segment < mark.segment ? Infinity : mark.offset;
}

function withinLines(
  mark: JournalMark | null,
  active: Segment | undefined,
): JournalMark | null {
  if (mark === null || active === undefined) {
    return mark;
  }
  const end = { segment: active.number, offset: active.end };
  return compareMarks(mark, end) <= 0
    ? mark
    : { ...end, from: Math.min(mark.from, active.number) };
}

function report(
  segment: Segment,
  scan: SegmentScan,
  last: boolean,
  log: JournalLog,
): void {
  const damaged = [...scan.damaged];
  if (scan.torn.bytes > 0) {
    if (last) {
      log.warn(
        { segment: segment.number, ...scan.torn },
        "The last journal line was incomplete after a crash and was removed: its call counts as not started or as interrupted.",
      );
    } else {
      damaged.push(scan.torn);
    }
  }
  if (damaged.length === 0) {
    return;
  }
  log.error(
    {
      segment: segment.number,
      damagedLines: damaged.length,
      // Enough to inspect; a damaged segment is not listed in full.
      at: damaged.slice(0, 10),
    },
    "Damaged journal lines were skipped: check the disk. Their calls are missing from the ledger.",
  );
}
