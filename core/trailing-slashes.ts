/** A text without slashes at its end. The regular expression for it takes quadratic time where many slashes are followed by something else. */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text.endsWith("/", end)) {
    end -= 1;
  }
  return text.slice(0, end);
}
