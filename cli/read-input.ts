/** All of a pipe, without the line break at its end. */
export async function readInput(input: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const bytes of input) {
    chunks.push(Buffer.from(bytes as Uint8Array));
  }
  return Buffer.concat(chunks).toString("utf8").trimEnd();
}
