/**
 * Where the state is kept, without sidecar files. The engine writes one (`.attrs`) beside each file of a state in files, and not
 * in one piece: a run that is killed meanwhile leaves it empty, and then no command reads the state ("failed to load checkpoint:
 * EOF"). Nothing here asks for what they hold. Source: gocloud.dev/blob/fileblob
 */
export function withoutSidecars(backendUrl: string): string {
  if (!backendUrl.startsWith("file://") || /[?&]metadata=/.test(backendUrl)) {
    return backendUrl;
  }
  return `${backendUrl}${backendUrl.includes("?") ? "&" : "?"}metadata=skip`;
}
