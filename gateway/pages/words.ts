/** "$ 41.55"; below a cent as much as it takes: "$ 0.00034". */
export function money(dollars: number): string {
  const size = Math.abs(dollars);
  if (size === 0 || size >= 0.01) {
    return `$ ${grouped(dollars, 2)}`;
  }
  const digits = Math.min(12, 1 - Math.floor(Math.log10(size)));
  return `$ ${dollars.toFixed(digits).replace(/0+$/, "")}`;
}

/** "18,204" */
export function grouped(value: number, digits = 0): string {
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** "22 Nov 2026, 00:00 CET" */
export function moment(at: string, timeZone: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone,
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  }).format(new Date(at));
}

/** "Sat 21 Nov" of `2026-11-21`. */
export function dayName(day: string): string {
  return new Intl.DateTimeFormat("en-GB", {
    timeZone: "UTC",
    weekday: "short",
    day: "numeric",
    month: "short",
  }).format(new Date(day));
}

/** "1 call", "2,400 calls" */
export function counted(count: number, one: string, many: string): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}
