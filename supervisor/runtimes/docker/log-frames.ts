const HEADER_BYTES = 8;

/**
 * The text of Docker's log stream of a container without a terminal: frames of one byte for the stream, three zero bytes, four
 * bytes for the length (big-endian) and the text; standard output and error in the order of writing.
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
  // Joined before decoding: a character may be split between two frames.
  return Buffer.concat(parts).toString("utf8");
}
