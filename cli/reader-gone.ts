let reaction: () => void = () => undefined;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") {
    reaction();
  }
});

/** What happens when nobody reads standard output any more, which the next line shows; the last one set counts. */
export function onReaderGone(react: () => void): void {
  reaction = react;
}
