import {
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import { Transform, type TransformCallback } from "node:stream";
import { Failure } from "../../core/failure.ts";

/**
 * How a file is encrypted for the other host: `HBC1`, a random salt of 32 bytes, then frames. Each frame is a length (4 bytes,
 * big-endian), as many bytes of AES-256-GCM ciphertext, and its tag (16 bytes). The key of a file comes from the copy's key by
 * HKDF-SHA256 with the salt and the name of the file; a frame's nonce is its number (11 bytes) and whether it is the last one
 * (1 byte). Frames that are missing, repeated, moved, or of another file or backup cannot be decrypted.
 */
const MAGIC = Buffer.from("HBC1");
const SALT_BYTES = 32;
const FRAME_BYTES = 256 * 1024;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;

/** 32 random bytes as 43 URL-safe characters. */
export function makeCopyKey(): string {
  return randomBytes(32).toString("base64url");
}

/** The key as bytes; throws a Failure when a text cannot be one. */
export function parseCopyKey(text: string): Buffer {
  const key = Buffer.from(text.trim(), "base64url");
  if (key.length === 32 && /^[\w-]{43}$/.test(text.trim())) {
    return key;
  }
  throw new Failure(
    "invalid key of copies: it must have 43 letters, digits, - or _, as shown by `hearth backup key`.",
  );
}

function fileKey(key: Buffer, salt: Buffer, what: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, salt, `hearth copy ${what}`, 32));
}

function nonceOf(frame: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(frame), 3);
  nonce[11] = last ? 1 : 0;
  return nonce;
}

/** Encrypts a stream; `what` names the file and its backup. */
export function sealing(key: Buffer, what: string): Transform {
  const salt = randomBytes(SALT_BYTES);
  const own = fileKey(key, salt, what);
  let frame = 0;
  let waiting = Buffer.alloc(0);
  const seal = (plain: Buffer, last: boolean): Buffer => {
    const cipher = createCipheriv("aes-256-gcm", own, nonceOf(frame, last));
    frame += 1;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(plain.length);
    return Buffer.concat([
      length,
      cipher.update(plain),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
  };
  const sealer = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      waiting = Buffer.concat([waiting, chunk]);
      // One frame is retained: the last one is sealed as such.
      while (waiting.length > FRAME_BYTES) {
        this.push(seal(waiting.subarray(0, FRAME_BYTES), false));
        waiting = waiting.subarray(FRAME_BYTES);
      }
      done();
    },
    flush(done) {
      done(null, seal(waiting, true));
    },
  });
  sealer.push(Buffer.concat([MAGIC, salt]));
  return sealer;
}

/** Decrypts a stream of `sealing`. Fails with a Failure if it is truncated, altered, of another file, or of another key. */
export function opening(key: Buffer, what: string): Transform {
  const frames = new FrameReader(key, what);
  const attempt = (done: TransformCallback, act: () => void): void => {
    try {
      act();
    } catch (error) {
      done(error instanceof Error ? error : spoiled(what));
      return;
    }
    done();
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      attempt(done, () => {
        for (const plain of frames.read(chunk)) {
          this.push(plain);
        }
      });
    },
    flush(done) {
      attempt(done, () => this.push(frames.readLast()));
    },
  });
}

/** Decrypts frames as their bytes arrive. */
class FrameReader {
  readonly #key: Buffer;
  readonly #what: string;
  /** Known after the header. */
  #fileKey: Buffer | undefined;
  #frame = 0;
  #pending = Buffer.alloc(0);

  constructor(key: Buffer, what: string) {
    this.#key = key;
    this.#what = what;
  }

  /** The plaintext of every frame that is complete by now and followed by another one. */
  *read(chunk: Buffer): Generator<Buffer> {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    const fileKey = this.#readHeader();
    if (fileKey === undefined) {
      return;
    }
    for (;;) {
      const plain = this.#openFrame(fileKey, false);
      if (plain === undefined) {
        return;
      }
      yield plain;
    }
  }

  /** The plaintext of the last frame, at the end of the stream. */
  readLast(): Buffer {
    const plain =
      this.#fileKey === undefined
        ? undefined
        : this.#openFrame(this.#fileKey, true);
    if (plain === undefined || this.#pending.length > 0) {
      throw spoiled(this.#what);
    }
    return plain;
  }

  #readHeader(): Buffer | undefined {
    if (this.#fileKey !== undefined) {
      return this.#fileKey;
    }
    const header = this.#take(MAGIC.length + SALT_BYTES);
    if (header === undefined) {
      return undefined;
    }
    if (!header.subarray(0, MAGIC.length).equals(MAGIC)) {
      throw spoiled(this.#what);
    }
    const salt = header.subarray(MAGIC.length);
    this.#fileKey = fileKey(this.#key, salt, this.#what);
    return this.#fileKey;
  }

  /** Only the following bytes show whether a frame is the last one, which its nonce depends on. */
  #openFrame(key: Buffer, last: boolean): Buffer | undefined {
    if (this.#pending.length < LENGTH_BYTES) {
      return undefined;
    }
    const length = this.#pending.readUInt32BE();
    const whole = LENGTH_BYTES + length + TAG_BYTES;
    if (length > FRAME_BYTES) {
      throw spoiled(this.#what);
    }
    if (this.#pending.length < whole + (last ? 0 : 1)) {
      return undefined;
    }
    const taken = this.#take(whole) ?? Buffer.alloc(0);
    const nonce = nonceOf(this.#frame, last);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce);
    this.#frame += 1;
    decipher.setAuthTag(taken.subarray(whole - TAG_BYTES));
    const sealed = taken.subarray(LENGTH_BYTES, whole - TAG_BYTES);
    try {
      return Buffer.concat([decipher.update(sealed), decipher.final()]);
    } catch {
      throw spoiled(this.#what);
    }
  }

  #take(bytes: number): Buffer | undefined {
    if (this.#pending.length < bytes) {
      return undefined;
    }
    const taken = this.#pending.subarray(0, bytes);
    this.#pending = this.#pending.subarray(bytes);
    return taken;
  }
}

function spoiled(what: string): Failure {
  return new Failure(
    `cannot decrypt the copy of ${what}: it is truncated or altered, or another key is needed; try another copy, or the key that was shown when this one was created.`,
  );
}
