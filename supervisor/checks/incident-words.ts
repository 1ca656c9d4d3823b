import { inWords } from "../../core/duration.ts";
import { clock, dayIn, moment } from "../../core/words.ts";
import type { Incident } from "./incidents.ts";

/** "12 min", "12 min, ongoing"; of one that was flapping also how often: "58 min, 20 times, down for 20 min". */
export function lastedInWords({
  durationMs,
  downMs,
  times,
  until,
}: Pick<Incident, "durationMs" | "downMs" | "times" | "until">): string {
  return [
    inWords(durationMs),
    ...(times === 1 ? [] : [`${times} times`, `down for ${inWords(downMs)}`]),
    ...(until === null ? ["ongoing"] : []),
  ].join(", ");
}

/** "21 Nov, 10:02 to 11:00", "since 21 Nov, 10:02". */
export function periodInWords(
  from: number,
  until: number | null,
  timeZone: string,
): string {
  if (until === null) {
    return `since ${moment(from, timeZone)}`;
  }
  const sameDay = dayIn(timeZone, from) === dayIn(timeZone, until);
  return `${moment(from, timeZone)} to ${(sameDay ? clock : moment)(until, timeZone)}`;
}

/** The worst that happened in it. */
export function levelInWords({ down }: Pick<Incident, "down">): string {
  return down ? "down" : "failed checks";
}
