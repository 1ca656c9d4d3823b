/** The last `lines` lines of a text, oldest first. */
export function lastLinesOf(text: string, lines: number): readonly string[] {
  const all = text.split("\n");
  if (all.at(-1) === "") {
    all.pop();
  }
  return all.slice(-lines);
}
