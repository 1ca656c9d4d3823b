import { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import { isForGateway } from "../calls/gateway-fields.ts";
import { UploadedFile } from "../calls/uploaded-file.ts";
import { countBody } from "./count-body.ts";
import { isRecord, parseJson } from "../../core/json.ts";
import { CallError } from "./errors.ts";

export function isForm(contentType: string): boolean {
  return /^multipart\/form-data\b/i.test(contentType);
}

type Value = string | UploadedFile;
type Part = readonly [name: string, value: Value];

/** More than any real form has. */
const LIMITS = {
  fields: 1_000,
  files: 32,
  // Those without a name count only here.
  parts: 1_032,
  headerPairs: 32,
};
/** In bytes. Between two pieces, other calls go on, and a form that is rejected is read no further. */
const PIECE = 64 * 1024;
const MAX_NAME_CHARACTERS = 256;
/** Of all texts for the gateway: parsed, they take several times their size. */
const MAX_DECODED_CHARACTERS = 256 * 1024;

/**
 * Reads a multipart form. Fields keep the names that they were sent with (`image[]`), repeated ones become lists, and files
 * are {@link UploadedFile}. Fields for the gateway become what they are in a JSON body, from JSON as text or from names such as
 * `metadata[tags][]`. Throws 400 for a body that is not such a form.
 */
export async function readForm(
  body: Buffer,
  contentType: string,
): Promise<Readonly<Record<string, unknown>>> {
  const parts = await partsOf(body, { "content-type": contentType });
  const fields = new Map<string, unknown>();
  let decodedCharacters = 0;
  for (const [name, value] of parts) {
    if (name.length > MAX_NAME_CHARACTERS) {
      throw invalid("a field has too long a name");
    }
    const [root = "", ...path] = pathOf(name);
    if (isForGateway(root)) {
      const text = textOfField(root, value);
      decodedCharacters += text.length;
      if (decodedCharacters > MAX_DECODED_CHARACTERS) {
        throw invalid(`\`${root}\` is too long`);
      }
      fields.set(root, placed(fields.get(root), path, decoded(text)));
    } else {
      // A list has no place for a model: a provider could read another one than the gateway.
      const key = root === "model" ? root : name;
      const before = fields.get(key);
      fields.set(key, before === undefined ? value : [before, value].flat());
    }
  }
  return Object.fromEntries(fields);
}

function textOfField(name: string, value: Value): string {
  if (typeof value !== "string") {
    throw invalid(`\`${name}\` is a file`);
  }
  return value;
}

function partsOf(
  body: Buffer,
  headers: BusboyHeaders,
): Promise<readonly Part[]> {
  return new Promise((resolve, reject) => {
    const parts: Part[] = [];
    const source = Readable.from(piecesOf(body));
    const fail = (reason: string) => {
      source.destroy();
      reject(invalid(reason));
    };
    try {
      const busboy = new Busboy({
        headers,
        limits: { ...LIMITS, fieldSize: body.length },
      });
      busboy.on("field", (name, value) => parts.push([name, value]));
      busboy.on("file", (name, stream, fileName, _encoding, type) => {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () =>
          parts.push([
            name,
            new UploadedFile(fileName ?? "", type, Buffer.concat(chunks)),
          ]),
        );
        stream.on("error", () => fail("a file is incomplete"));
      });
      busboy.on("fieldsLimit", () => fail("it has too many fields"));
      busboy.on("filesLimit", () => fail("it has too many files"));
      busboy.on("partsLimit", () => fail("it has too many parts"));
      busboy.on("error", (error) => fail((error as Error).message));
      busboy.on("finish", () => resolve(parts));
      source.pipe(busboy);
    } catch (error) {
      fail((error as Error).message);
    }
  });
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; start += PIECE) {
    yield body.subarray(start, start + PIECE);
  }
}

function invalid(reason: string): CallError {
  return new CallError(
    "invalid_request",
    `The form cannot be read: ${reason}. Send valid multipart/form-data.`,
  );
}

/** `metadata[tags][]` as `metadata`, `tags` and an empty name. */
function pathOf(name: string): readonly string[] {
  const [root = ""] = name.split("[", 1);
  const rest = name.slice(root.length);
  return /^(\[[^[\]]*\])+$/.test(rest)
    ? [root, ...rest.slice(1, -1).split("][")]
    : rest === ""
      ? [root]
      : [name];
}

/** Throws for JSON that is nested too deep. Text that is JSON of an object, a list or a truth value, as such; other text, numbers included, stays text. */
function decoded(text: string): unknown {
  countBody(Buffer.from(text));
  const value = /^\s*([[{]|(true|false|null)\s*$)/i.test(text)
    ? parseJson(
        text
          .trim()
          .replace(/^(true|false|null)$/i, (word) => word.toLowerCase()),
      )
    : undefined;
  return value === undefined ? text : value;
}

/**
 * A value at its place below a field: `[]` adds to a list, a name sets a field of an object. The fields of an object in a list
 * (`[][model]`, `[][prompt]`) follow each other.
 */
function placed(
  before: unknown,
  [name, ...rest]: readonly string[],
  value: unknown,
): unknown {
  if (name === undefined) {
    return value;
  }
  if (name === "") {
    const items: readonly unknown[] = Array.isArray(before) ? before : [];
    const last = items.at(-1);
    return rest.length > 0 &&
      isRecord(last) &&
      !Object.hasOwn(last, rest[0] ?? "")
      ? [...items.slice(0, -1), placed(last, rest, value)]
      : [...items, placed(undefined, rest, value)];
  }
  const fields = isRecord(before) ? before : {};
  const inner = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return Object.fromEntries([
    ...Object.entries(fields),
    [name, placed(inner, rest, value)],
  ]);
}
