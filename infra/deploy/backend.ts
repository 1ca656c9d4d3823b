/**
 * URL of the state without sidecar files. With a state in files, the engine writes a sidecar (`.attrs`) for each file, and not
 * atomically: a run killed meanwhile leaves it empty, and then no command can read the state ("failed to load checkpoint:
 * EOF"). Their content is not needed here. Source: gocloud.dev/blob/fileblob
 */
export function withoutSidecars(backendUrl: string): string {
  if (!backendUrl.startsWith("file://") || /[?&]metadata=/.test(backendUrl)) {
    return backendUrl;
  }
  return `${backendUrl}${backendUrl.includes("?") ? "&" : "?"}metadata=skip`;
}
