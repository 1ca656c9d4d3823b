import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { Decrypter, Encrypter } from "age-encryption";
import { watching } from "../backup/backup-files.ts";
import { Failure, textOf } from "../../core/failure.ts";

/** Not loaded at the start: without off-site backups a supervisor never needs it. */
const age = () => import("age-encryption");

/** `AGE-SECRET-KEY-1…`, as age-keygen creates it; it decrypts everything. */
export async function makeIdentity(): Promise<string> {
  return (await age()).generateX25519Identity();
}

/** The public half, `age1…`. Throws a Failure if the text is not an identity. */
export async function recipientOf(identity: string): Promise<string> {
  const { identityToRecipient } = await age();
  try {
    return await identityToRecipient(identity);
  } catch {
    throw new Failure(
      "invalid age identity: it must be the whole line that `hearth offsite key` prints, starting with AGE-SECRET-KEY-1; compare each character.",
    );
  }
}

/** The identity in the text of a key file, which may have comments (age-keygen writes some). Throws a Failure if there is none. */
export async function identityIn(text: string): Promise<string> {
  const line = text
    .split("\n")
    .map((each) => each.trim())
    .find((each) => each !== "" && !each.startsWith("#"));
  await recipientOf(line ?? "");
  return line ?? "";
}

async function encrypterFor(recipient: string): Promise<Encrypter> {
  const encrypter = new (await age()).Encrypter();
  encrypter.addRecipient(recipient);
  return encrypter;
}

async function decrypterFor(identity: string): Promise<Decrypter> {
  const decrypter = new (await age()).Decrypter();
  decrypter.addIdentity(identity);
  return decrypter;
}

/** The encrypted size of a file by its size. */
export async function encryptedSizes(
  recipient: string,
): Promise<(bytes: number) => number> {
  const encrypter = await encrypterFor(recipient);
  const stream = await encrypter.encrypt(
    Readable.toWeb(Readable.from([])) as globalThis.ReadableStream<Uint8Array>,
  );
  return (bytes) => stream.size(bytes);
}

/** Encrypts a file. Returns the SHA-256 (hex) of its plaintext. */
export async function encryptFile(
  recipient: string,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash("sha256");
  const plain = createReadStream(from);
  const hashed = plain.pipe(watching((chunk) => hash.update(chunk)));
  plain.once("error", (error) => hashed.destroy(error));
  const encrypter = await encrypterFor(recipient);
  const encrypted = await encrypter.encrypt(
    Readable.toWeb(hashed) as globalThis.ReadableStream<Uint8Array>,
  );
  await pipeline(
    Readable.fromWeb(encrypted as ReadableStream),
    createWriteStream(to, { mode: 0o600 }),
    { signal },
  );
  return hash.digest("hex");
}

export async function encryptText(
  recipient: string,
  text: string,
): Promise<Uint8Array> {
  return (await encrypterFor(recipient)).encrypt(text);
}

/** Decrypts a file. Throws a Failure if it is truncated or altered, or encrypted for another identity. */
export async function decryptFile(
  identity: string,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const decrypter = await decrypterFor(identity);
  try {
    const plain = await decrypter.decrypt(
      Readable.toWeb(
        createReadStream(from),
      ) as globalThis.ReadableStream<Uint8Array>,
    );
    await pipeline(
      Readable.fromWeb(plain as ReadableStream),
      createWriteStream(to, { flags: "wx", mode: 0o600, flush: true }),
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw undecryptable(error);
  }
}

export async function decryptText(
  identity: string,
  encrypted: Uint8Array,
): Promise<string> {
  const decrypter = await decrypterFor(identity);
  try {
    return await decrypter.decrypt(encrypted, "text");
  } catch (error) {
    throw undecryptable(error);
  }
}

function undecryptable(error: unknown): Failure {
  return new Failure(
    `cannot decrypt an off-site file (${textOf(error)}): it is altered or truncated; fetch another backup (\`hearth offsite list\`) and check the target.`,
    error,
  );
}
