let reaction: (error: NodeJS.ErrnoException) => void = () => undefined;

process.stdout.on("error", (error: NodeJS.ErrnoException) => reaction(error));

/** Sets the reaction to a standard output that is closed (EPIPE) or cannot be written, noticed with the next write. The last one set applies. */
export function onOutputError(
  react: (error: NodeJS.ErrnoException) => void,
): void {
  reaction = react;
}
