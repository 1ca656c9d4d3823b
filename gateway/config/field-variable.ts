import type { z } from "zod";
import type { Reading } from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";

/** A variable read like a field of the file; null when unset or invalid (with a problem). */
export function fieldVariable<T>(
  reading: Reading,
  read: ReadVariable,
  name: string,
  field: z.ZodType<T | undefined>,
): T | null {
  const value = read(name);
  if (value === null) {
    return null;
  }
  const parsed = field.safeParse(value);
  if (parsed.success) {
    return parsed.data ?? null;
  }
  reading.problems.push({
    file: null,
    line: null,
    path: name,
    message: parsed.error.issues[0]?.message ?? "is invalid",
  });
  return null;
}
