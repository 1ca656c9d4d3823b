let reaction: () => void = () => undefined;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") {
    reaction();
  }
});

/** Sets the reaction to a closed standard output, noticed with the next write. The last one set applies. */
export function onOutputClosed(react: () => void): void {
  reaction = react;
}
