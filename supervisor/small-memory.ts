/**
 * Node's options for a supervisor, which mostly waits: a young generation of 1 MB rather than one that grew to 16 MB while it
 * started and stays so, code that is small rather than quick, one helping thread. They hold 20 MB less. Only the command line can
 * set them, so they stand wherever one is started: also in bin/hearth.js, package.json and the image (infra/images/image-context.ts).
 */
export const SMALL_MEMORY = [
  "--max-semi-space-size=1",
  "--optimize-for-size",
  "--v8-pool-size=1",
] as const;
