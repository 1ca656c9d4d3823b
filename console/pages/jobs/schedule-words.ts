import cronstrue from "cronstrue";

/** "Every day at 03:00", "At 04:00, on day 1 of the month"; null for what has no words. */
export function scheduleInWords(cron: string): string | null {
  try {
    return cronstrue
      .toString(cron, { use24HourTimeFormat: true })
      .replace(/^At (\d\d:\d\d)$/, "Every day at $1");
  } catch {
    return null;
  }
}
