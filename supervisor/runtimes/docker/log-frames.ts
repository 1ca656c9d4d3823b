const HEADER_BYTES = 8;

/**
 * The text of what Docker sends for the logs of a container without a terminal: frames of one byte for the stream, three of zero,
 * four for the length (big-endian), then the text; standard output and error in the order in which they were written.
 */
export function readLogFrames(body: Buffer): string {
  const parts: Buffer[] = [];
  let at = 0;
  while (at + HEADER_BYTES <= body.length) {
    const length = body.readUInt32BE(at + 4);
    at += HEADER_BYTES;
    parts.push(body.subarray(at, at + length));
    at += length;
  }
  // Joined before decoding: a character may be cut between two frames.
  return Buffer.concat(parts).toString("utf8");
}
