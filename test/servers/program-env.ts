/** The environment of a program that a test starts: the path, and where Node keeps compiled modules (bin/setup.js). */
export function programEnv(): {
  readonly PATH: string;
  readonly [name: string]: string;
} {
  const { PATH = "", ...others } = process.env;
  const cache = Object.entries(others).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith("NODE_COMPILE_CACHE") && entry[1] !== undefined,
  );
  return { PATH, ...Object.fromEntries(cache) };
}
