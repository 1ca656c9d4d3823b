import { decodeBinary } from "octagonal-wheels/binary";
import {
  decrypt,
  encryptBinary,
  HKDF_ENCRYPTED_PREFIX,
} from "octagonal-wheels/encryption/hkdf";
import { base64ToArrayBuffer } from "octagonal-wheels/binary/base64";
import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { isEncryptedPath } from "./livesync.ts";

/** A note, or another file, as LiveSync stores it; where it is encrypted, what is inside was decrypted. */
const metadata = z.looseObject({
  _id: z.string(),
  _rev: z.string(),
  type: z.string(),
  path: z.string(),
  mtime: z.number().default(0),
  ctime: z.number().default(0),
  size: z.number().default(0),
  children: z.array(z.string()).default([]),
  /** Chunks that lie in the document itself. */
  eden: z.record(z.string(), z.looseObject({ data: z.string() })).default({}),
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

/** What stands before a path inside the encryption, and the chunk that holds the encrypted chunks of a document itself. */
const SEALED_PATH = "/\\:";
const SEALED_EDEN = "h:++encrypted-hkdf";

/** Reads and writes the documents of one vault; encryption is LiveSync's second (HKDF, AES-256-GCM), by its author's library. */
export interface NoteCipher {
  /** Undefined for a document that is no note. */
  readonly read: (document: unknown) => Promise<NoteDocument | undefined>;
  /** The stored form of a document with some members changed; encrypted where it was before. */
  readonly change: (
    stored: Readonly<Record<string, unknown>>,
    members: Readonly<Record<string, unknown>> & { readonly mtime: number },
  ) => Promise<Readonly<Record<string, unknown>>>;
  readonly chunk: (chunk: ChunkDocument) => Promise<string>;
}

/** `passphrase` is asked for when something encrypted is met. `salt` is the vault's security seed in base64. */
export function openCipher(
  vault: string,
  salt: string | null,
  passphrase: () => Promise<string>,
): NoteCipher {
  let asked: Promise<string> | undefined;
  const seed = () => {
    if (salt !== null) {
      return new Uint8Array(base64ToArrayBuffer(salt));
    }
    throw new Failure(
      `vault ${vault} has lost its security seed: \`hearth notes restore-seed ${vault}\` puts it back.`,
    );
  };
  const unseal = async (text: string): Promise<string> => {
    if (!text.startsWith(HKDF_ENCRYPTED_PREFIX)) {
      throw new Failure(
        `vault ${vault} holds notes of an encryption older than version 2: rewrite them on a device (Rebuild everything) first.`,
      );
    }
    asked ??= passphrase();
    const key = await asked;
    return decrypt(text, key, seed()).catch(() => {
      throw new Failure(`this is not the passphrase of vault ${vault}.`);
    });
  };
  const seal = async (text: string): Promise<string> => {
    asked ??= passphrase();
    return encryptText(text, await asked, seed());
  };
  return {
    read: async (document) => {
      const parsed = metadata.safeParse(document);
      if (!parsed.success) {
        return undefined;
      }
      const stored = parsed.data;
      const eden = stored.eden[SEALED_EDEN];
      return {
        ...stored,
        ...(isEncryptedPath(stored.path)
          ? sealed.parse(
              JSON.parse(await unseal(stored.path.slice(SEALED_PATH.length))),
            )
          : {}),
        ...(eden === undefined
          ? {}
          : {
              eden: JSON.parse(await unseal(eden.data)) as NoteDocument["eden"],
            }),
      };
    },
    change: async (stored, members) => {
      const { path } = stored;
      if (typeof path !== "string" || !isEncryptedPath(path)) {
        return { ...stored, ...members };
      }
      const { mtime, ...others } = members;
      const inside = JSON.parse(
        await unseal(path.slice(SEALED_PATH.length)),
      ) as object;
      const text = JSON.stringify({ ...inside, mtime });
      return { ...stored, ...others, path: SEALED_PATH + (await seal(text)) };
    },
    chunk: async ({ data, e_: encrypted }) =>
      encrypted === true ? unseal(data) : data,
  };
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
