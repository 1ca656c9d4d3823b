import { Busboy } from "@fastify/busboy";
import { afterEach, expect, test, vi } from "vitest";
import { readForm } from "./form.ts";

const TYPE = "multipart/form-data; boundary=x";
const PARTS = 50_000;

afterEach(() => vi.restoreAllMocks());

function formOf(header: (at: number) => string): Buffer {
  const parts = Array.from(
    { length: PARTS },
    (_, at) => `--x\r\n${header(at)}\r\n\r\nvalue\r\n`,
  );
  return Buffer.from(`${parts.join("")}--x--\r\n`);
}

test.each([
  [
    "fields",
    (at: number) => `Content-Disposition: form-data; name="field-${at}"`,
  ],
  ["parts", () => "Content-Type: text/plain"],
])("a form with too many %s is read no further", async (what, header) => {
  const write = vi.spyOn(Busboy.prototype, "_write");
  const body = formOf(header);
  await expect(readForm(body, TYPE)).rejects.toThrow(
    `The form cannot be read: it has too many ${what}.`,
  );
  const read = write.mock.calls.reduce(
    (sum, [piece]) => sum + (piece as Buffer).length,
    0,
  );
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(body.length / 2);
});

test("a file that takes several pieces is complete", async () => {
  const content = Buffer.alloc(300_000, "hearth ");
  const body = Buffer.concat([
    Buffer.from(
      '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n',
    ),
    content,
    Buffer.from("\r\n--x--\r\n"),
  ]);
  const { file } = await readForm(body, TYPE);
  expect(file).toMatchObject({ name: "a.wav", bytes: content });
});
