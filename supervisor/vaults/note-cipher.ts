import { decodeBinary } from "octagonal-wheels/binary";
import {
  decrypt,
  encryptBinary,
  HKDF_ENCRYPTED_PREFIX,
} from "octagonal-wheels/encryption/hkdf";
import { base64ToArrayBuffer } from "octagonal-wheels/binary/base64";
import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { parseJson } from "../../core/json.ts";
import { isEncryptedPath } from "./livesync.ts";

const chunksInside = z.record(z.string(), z.looseObject({ data: z.string() }));
/** A note, or another file, as LiveSync stores it, decrypted. */
const metadata = z.looseObject({
  _id: z.string(),
  _rev: z.string(),
  type: z.string(),
  path: z.string(),
  mtime: z.number().default(0),
  ctime: z.number().default(0),
  size: z.number().default(0),
  children: z.array(z.string()).default([]),
  /** Chunks embedded in the document itself. */
  eden: chunksInside.default({}),
  deleted: z.boolean().default(false),
});
const sealed = z.looseObject({
  path: z.string(),
  mtime: z.number(),
  ctime: z.number(),
  size: z.number(),
  children: z.array(z.string()).default([]),
});

export type NoteDocument = Readonly<z.output<typeof metadata>>;

export interface ChunkDocument {
  readonly _id: string;
  readonly data: string;
  readonly e_?: boolean;
}

/** Prefix of an encrypted path, and the id of the chunk that contains the encrypted embedded chunks of a document. */
const SEALED_PATH = "/\\:";
const SEALED_EDEN = "h:++encrypted-hkdf";

/** A note or a part of one that cannot be decrypted. A member of the vault can write any number of them. */
export class UnreadableNote extends Failure {}

/** Reads and writes the documents of one vault; encryption is LiveSync's second (HKDF, AES-256-GCM), by its author's library. */
export class NoteCipher {
  readonly #vault: string;
  readonly #salt: string | null;
  readonly #askPassphrase: () => Promise<string>;
  #passphraseOnce: Promise<string> | undefined;

  /** `askPassphrase` is called once, when encrypted data is first found. `salt` is the vault's security seed in base64. */
  constructor(
    vault: string,
    salt: string | null,
    askPassphrase: () => Promise<string>,
  ) {
    this.#vault = vault;
    this.#salt = salt;
    this.#askPassphrase = askPassphrase;
  }

  /** Undefined for a document that is not a note. Throws an UnreadableNote. */
  async read(document: unknown): Promise<NoteDocument | undefined> {
    const parsed = metadata.safeParse(document);
    if (!parsed.success) {
      return undefined;
    }
    const stored = parsed.data;
    const eden = stored.eden[SEALED_EDEN];
    return {
      ...stored,
      ...(isEncryptedPath(stored.path)
        ? this.#parsed(sealed, await this.#unsealPath(stored.path))
        : {}),
      ...(eden === undefined
        ? {}
        : { eden: this.#parsed(chunksInside, await this.#unseal(eden.data)) }),
    };
  }

  /** The stored form of a document with some members changed; encrypted if it was encrypted before. */
  async change(
    stored: Readonly<Record<string, unknown>>,
    members: Readonly<Record<string, unknown>> & { readonly mtime: number },
  ): Promise<Readonly<Record<string, unknown>>> {
    const { path } = stored;
    if (typeof path !== "string" || !isEncryptedPath(path)) {
      return { ...stored, ...members };
    }
    const { mtime, ...others } = members;
    const inside = this.#parsed(
      z.looseObject({}),
      await this.#unsealPath(path),
    );
    const text = JSON.stringify({ ...inside, mtime });
    const changed = await encryptText(
      text,
      await this.#passphrase(),
      this.#seed(),
    );
    return { ...stored, ...others, path: SEALED_PATH + changed };
  }

  /** Throws an UnreadableNote. */
  async chunk({ data, e_: encrypted }: ChunkDocument): Promise<string> {
    return encrypted === true ? this.#unseal(data) : data;
  }

  #unsealPath(path: string): Promise<string> {
    return this.#unseal(path.slice(SEALED_PATH.length));
  }

  #parsed<Schema extends z.ZodType>(
    schema: Schema,
    json: string,
  ): z.output<Schema> {
    const parsed = schema.safeParse(parseJson(json));
    if (!parsed.success) {
      throw new UnreadableNote(
        `vault ${this.#vault} contains a note of an unknown form.`,
      );
    }
    return parsed.data;
  }

  async #unseal(text: string): Promise<string> {
    if (!text.startsWith(HKDF_ENCRYPTED_PREFIX)) {
      throw new UnreadableNote(
        `vault ${this.#vault} contains notes encrypted with a version before 2: first rewrite them on a device (Rebuild everything).`,
      );
    }
    const key = await this.#passphrase();
    return decrypt(text, key, this.#seed()).catch(() => {
      throw new UnreadableNote(`wrong passphrase for vault ${this.#vault}.`);
    });
  }

  #passphrase(): Promise<string> {
    this.#passphraseOnce ??= this.#askPassphrase();
    return this.#passphraseOnce;
  }

  #seed(): Uint8Array<ArrayBuffer> {
    if (this.#salt !== null) {
      return new Uint8Array(base64ToArrayBuffer(this.#salt));
    }
    throw new UnreadableNote(
      `vault ${this.#vault} has lost its security seed. Run \`hearth notes restore-seed ${this.#vault}\` to restore it.`,
    );
  }
}

/** Encrypts a text as LiveSync does. The library's own `encrypt` needs a browser's FileReader for longer ones. */
export async function encryptText(
  text: string,
  passphrase: string,
  salt: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const sealed = await encryptBinary(bytes, passphrase, salt);
  return HKDF_ENCRYPTED_PREFIX + Buffer.from(sealed).toString("base64");
}

/** The bytes of a file from its chunks in order. */
export function joinChunks(type: string, pieces: readonly string[]): Buffer {
  return type === "newnote"
    ? Buffer.from(decodeBinary([...pieces]))
    : Buffer.from(pieces.join(""));
}
