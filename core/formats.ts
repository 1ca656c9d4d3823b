/** Formats of numbers and times, each constructed once: that takes much longer than to format a value. */

const numbers = new Map<number, Intl.NumberFormat>();
const dates = new Map<string, Intl.DateTimeFormat>();

/** With grouped thousands and this number of digits after the point: "18,204.00". */
export function numberFormat(digits: number): Intl.NumberFormat {
  const known = numbers.get(digits);
  if (known !== undefined) {
    return known;
  }
  const format = new Intl.NumberFormat("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  numbers.set(digits, format);
  return format;
}

/** `timeZone`: IANA name. */
export function dateFormat(
  locale: string,
  timeZone: string,
  options: Intl.DateTimeFormatOptions = {},
): Intl.DateTimeFormat {
  const key = `${locale} ${timeZone} ${JSON.stringify(options)}`;
  const known = dates.get(key);
  if (known !== undefined) {
    return known;
  }
  const format = new Intl.DateTimeFormat(locale, { timeZone, ...options });
  dates.set(key, format);
  return format;
}
