/** Output tokens expected before an alias has answered at all. */
const OUTPUT_BEFORE_ANY_CALL = 4_096;
/** With fewer answers a percentile is unreliable: it is blended with the default. */
const FADE_OVER = 20;
const REMEMBERED = 256;
const PERCENTILE = 0.99;
const RECOMPUTED_EVERY = 16;
/** Wildcard aliases can have any number of names. */
const MAX_ALIASES = 1_000;

interface OutputEstimates {
  /** Output tokens that the alias's next answer, or each of its choices or images, will hardly exceed. */
  estimate(alias: string): number;
  record(alias: string, tokens: number): void;
}

interface Recent {
  readonly outputs: number[];
  recorded: number;
  /** null: must be computed again. */
  percentile: number | null;
}

/** The 99th percentile of each alias's last 256 answers; recording is O(1), the percentile is sorted out every 16 answers. */
export function createOutputEstimates(): OutputEstimates {
  const aliases = new Map<string, Recent>();
  return {
    estimate(alias) {
      const recent = aliases.get(alias);
      if (recent === undefined) {
        return OUTPUT_BEFORE_ANY_CALL;
      }
      recent.percentile ??= percentileOf(recent.outputs);
      const unsure = Math.max(0, 1 - recent.recorded / FADE_OVER);
      return Math.max(
        recent.percentile,
        Math.ceil(OUTPUT_BEFORE_ANY_CALL * unsure),
      );
    },
    record(alias, tokens) {
      const recent = aliases.get(alias) ?? {
        outputs: [],
        recorded: 0,
        percentile: null,
      };
      if (recent.recorded === 0) {
        admit(aliases, alias, recent);
      }
      recent.outputs[recent.recorded % REMEMBERED] = tokens;
      recent.recorded++;
      if (
        recent.percentile === null ||
        tokens > recent.percentile ||
        recent.recorded <= FADE_OVER ||
        recent.recorded % RECOMPUTED_EVERY === 0
      ) {
        recent.percentile = null;
      }
    },
  };
}

function admit(
  aliases: Map<string, Recent>,
  alias: string,
  recent: Recent,
): void {
  if (aliases.size >= MAX_ALIASES) {
    const oldest = aliases.keys().next();
    if (!oldest.done) {
      aliases.delete(oldest.value);
    }
  }
  aliases.set(alias, recent);
}

function percentileOf(outputs: readonly number[]): number {
  const sorted = outputs.toSorted((a, b) => a - b);
  return (
    sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? OUTPUT_BEFORE_ANY_CALL
  );
}
