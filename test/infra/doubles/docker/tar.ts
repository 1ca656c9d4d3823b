/** A tar archive of files owned by root; the engine creates missing directories as 0755. */
export function tarOf(
  files: readonly {
    readonly path: string;
    readonly content: string;
    readonly mode: number;
  }[],
): Buffer {
  const blocks = files.flatMap(({ path, content, mode }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(path.replace(/^\//, ""), 0, 100);
    header.write(`${octal(mode, 7)}\0`, 100);
    header.write(`${octal(0, 7)}\0`, 108);
    header.write(`${octal(0, 7)}\0`, 116);
    header.write(`${octal(body.length, 11)}\0`, 124);
    header.write(`${octal(0, 11)}\0`, 136);
    header.write("        ", 148);
    header.write("0", 156);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${octal(sum, 6)}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
