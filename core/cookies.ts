/** The value of a cookie in a request's header; undefined without it. */
export function cookieIn(
  header: string | undefined,
  name: string,
): string | undefined {
  const start = `${name}=`;
  return (header ?? "")
    .split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(start))
    ?.slice(start.length);
}
