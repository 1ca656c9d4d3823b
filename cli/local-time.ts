/** "2026-11-21 10:02:07" in the time zone of this machine, as `--at` takes it. */
export function inZone(at: number): string {
  return new Date(at).toLocaleString("sv-SE");
}
