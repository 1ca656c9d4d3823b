/** A record for keys from outside, without inherited members such as `constructor`. */
export function dictionary<T>(
  entries: Readonly<Record<string, T>> = {},
): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, entries);
}

/** The record's own entry of this name. */
export function entryOf<T>(
  record: Readonly<Record<string, T>>,
  name: string,
): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
