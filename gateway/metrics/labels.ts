/** Replaces further values of a label that has reached its maximum. */
export const OTHER = "other";

/** Limits how many values a label takes: each is a separate series in Prometheus. */
export function createBoundedLabel(most: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) {
      return value;
    }
    if (known.size >= most) {
      return OTHER;
    }
    known.add(value);
    return value;
  };
}

const SEPARATOR = "\0";

/** One name for values of labels, which may contain any other character. */
export function joined(...values: readonly (string | number)[]): string {
  return values.join(SEPARATOR);
}

export function valuesIn(name: string): readonly string[] {
  return name.split(SEPARATOR);
}
