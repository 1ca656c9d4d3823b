/** Date and time in the zone and format of this machine. */
export function inZone(at: number): string {
  return new Date(at).toLocaleString();
}
