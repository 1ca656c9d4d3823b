/** Whole mebibytes, for memory, which is limited in that unit. */
export function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** "812 B", "14 kB", "1.4 MB", "2.1 GB": what a disk holds. */
export function sizeWords(bytes: number): string {
  if (bytes < 1000) {
    return `${bytes} B`;
  }
  if (bytes < 1e6) {
    return `${Math.round(bytes / 1000)} kB`;
  }
  return bytes < 1e9
    ? `${(bytes / 1e6).toFixed(1)} MB`
    : `${(bytes / 1e9).toFixed(1)} GB`;
}
