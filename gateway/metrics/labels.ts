/** What stands for every further value of a label that has as many as it may. */
export const OTHER = "other";

/** Bounds how many values a label takes: each of them is a series of its own for whoever collects them. */
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
