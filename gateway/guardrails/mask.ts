import type { Finding } from "./guard.ts";

/** A part of a text, and what replaces it. */
type Masked = Pick<Finding, "start" | "end" | "replacement">;

/** The text with what was found replaced; `found` is sorted and without overlaps. */
export function mask(text: string, found: readonly Masked[]): string {
  let masked = "";
  let at = 0;
  for (const { start, end, replacement } of found) {
    masked += text.slice(at, start) + replacement;
    at = end;
  }
  return masked + text.slice(at);
}

/** The findings in the order of the text; overlapping ones become one, masked as the first. */
export function withoutOverlaps<Found extends Masked>(
  found: readonly Found[],
): readonly Found[] {
  const merged: Found[] = [];
  for (const one of found.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last !== undefined && one.start < last.end) {
      merged[merged.length - 1] = {
        ...last,
        end: Math.max(last.end, one.end),
      };
    } else {
      merged.push(one);
    }
  }
  return merged;
}
