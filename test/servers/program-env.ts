/** The environment of a program that a test starts: the path, and where Node keeps compiled modules (bin/setup.js). */
export function programEnv(): { PATH: string; NODE_COMPILE_CACHE?: string } {
  const { PATH = "", NODE_COMPILE_CACHE } = process.env;
  return {
    PATH,
    ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
  };
}
