import {
  encryptText,
  NoteCipher,
  type ChunkDocument,
} from "../../supervisor/vaults/note-cipher.ts";
import type { Encryption } from "./vault-device.ts";

/** LiveSync's encryption version 2, including the paths. */
export function encryptionOf(
  passphrase: string,
  salt: Uint8Array<ArrayBuffer>,
): Encryption {
  const cipher = new NoteCipher(
    "vault",
    Buffer.from(salt).toString("base64"),
    async () => passphrase,
  );
  return {
    seal: async (document) => {
      if (document.type === "leaf") {
        const data = await encryptText(
          document.data as string,
          passphrase,
          salt,
        );
        return { ...document, data, e_: true };
      }
      const { path, mtime, children, ...rest } = document;
      const inside = { path, mtime, ctime: mtime, size: 0, children };
      const sealed = await encryptText(
        JSON.stringify(inside),
        passphrase,
        salt,
      );
      const outside = { mtime: 0, ctime: 0, size: 0, children: [] };
      return { ...rest, ...outside, path: `/\\:${sealed}` };
    },
    open: async (document) => {
      if (document.type !== "leaf") {
        return (
          ((await cipher.read(document)) as typeof document | undefined) ??
          document
        );
      }
      const data = await cipher.chunk(document as unknown as ChunkDocument);
      return { ...document, data };
    },
  };
}
