/**
 * Node options for a supervisor, which mostly waits: a young generation of 1 MB instead of one that grows to 16 MB during the
 * start, small code instead of fast code, one worker thread. They save 20 MB. Only the command line can set them, so they are
 * repeated in bin/hearth.js, package.json and the image (infra/images/image-context.ts).
 */
export const SMALL_MEMORY = [
  "--max-semi-space-size=1",
  "--optimize-for-size",
  "--v8-pool-size=1",
] as const;
