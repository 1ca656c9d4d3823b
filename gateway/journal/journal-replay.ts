import { compareMarks } from "./journal-mark.ts";
import { JournalReader } from "./journal-reader.ts";
import { JournalTail } from "./journal-tail.ts";
import type {
  JournalLog,
  JournalMark,
  Recorded,
  ReplayedBatch,
  Started,
} from "./journal-types.ts";
import type { Segment } from "./segment.ts";

const BATCH_ROWS = 1_000;

interface ReplayOptions {
  /** All that there are, oldest first. */
  readonly segments: readonly Segment[];
  /** Where the lines of previous processes end. */
  readonly recovered: Pick<JournalMark, "segment" | "offset">;
  /** null: from the beginning. */
  readonly since: JournalMark | null;
  /** null: nothing to replay. */
  readonly until: JournalMark | null;
  readonly log: JournalLog;
}

/** Rows that lines between two marks completed, in batches; those of segments that are deleted meanwhile are left out. */
export async function* replayRows<
  Intent extends Started,
  Outcome extends Recorded,
>(options: ReplayOptions): AsyncGenerator<ReplayedBatch<Intent, Outcome>> {
  const { since, until, recovered, log } = options;
  if (until === null) {
    return;
  }
  const segments = segmentsUntil(options.segments, until);
  const last = segments.at(-1);
  if (last === undefined) {
    return;
  }
  const reader = new JournalReader<Intent, Outcome>({
    segments: { list: segments, active: () => last },
    tail: new JournalTail(0),
    // Beyond the end nothing is interrupted.
    recovered:
      compareMarks(recovered, until) <= 0
        ? recovered
        : { segment: -1, offset: 0 },
    start: since,
    log,
  });
  try {
    for (;;) {
      const rows = await reader.read(BATCH_ROWS);
      if (rows.length === 0) {
        return;
      }
      yield { rows, mark: reader.mark() };
    }
  } finally {
    await reader.close();
  }
}

/** Copies, so that the last one ends at the mark. */
function segmentsUntil(
  segments: readonly Segment[],
  until: JournalMark,
): readonly Segment[] {
  return segments
    .filter(({ number }) => number <= until.segment)
    .map((segment) => ({
      ...segment,
      end: segment.number === until.segment ? until.offset : segment.end,
    }));
}
