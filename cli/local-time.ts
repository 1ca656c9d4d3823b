/** "2026-11-21 10:02:07" in the time zone of this machine, as `--at` takes it. */
export function inZone(at: number): string {
  const date = new Date(at);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const two = (part: number) => String(part).padStart(2, "0");
  return `${day.map(two).join("-")} ${date.toTimeString().slice(0, 8)}`;
}
