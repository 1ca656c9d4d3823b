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
 * HKDF-SHA256 with the salt and the name of what it is; a frame's nonce is its number (11 bytes) and whether it is the last one
 * (1 byte). So frames that are missing, doubled, moved, or taken from another file or backup do not open.
 */
const magic = Buffer.from("HBC1");
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
    "that is no key of copies: it has 43 letters, digits, - or _, as `hearth backup key` showed it.",
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

/** Encrypts a stream; `what` says which file of which backup it is. */
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
      // One frame stays behind: the last one is sealed as such.
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
  sealer.push(Buffer.concat([magic, salt]));
  return sealer;
}

/** Decrypts what `sealing` made. Errors with a Failure when it is cut, altered, of another file, or under another key. */
export function opening(key: Buffer, what: string): Transform {
  let own: Buffer | undefined;
  let frame = 0;
  let ended = false;
  let waiting = Buffer.alloc(0);

  function take(bytes: number): Buffer | undefined {
    if (waiting.length < bytes) {
      return undefined;
    }
    const taken = waiting.subarray(0, bytes);
    waiting = waiting.subarray(bytes);
    return taken;
  }

  function readHeader(): boolean {
    if (own !== undefined) {
      return true;
    }
    const header = take(magic.length + SALT_BYTES);
    if (header === undefined) {
      return false;
    }
    if (!header.subarray(0, magic.length).equals(magic)) {
      throw spoiled(what);
    }
    own = fileKey(key, header.subarray(magic.length), what);
    return true;
  }

  /** Whether a frame is the last is seen by what follows: only then is its nonce known. */
  function openFrame(last: boolean): Buffer | undefined {
    if (waiting.length < LENGTH_BYTES) {
      return undefined;
    }
    const length = waiting.readUInt32BE();
    const whole = LENGTH_BYTES + length + TAG_BYTES;
    if (length > FRAME_BYTES) {
      throw spoiled(what);
    }
    if (waiting.length < whole + (last ? 0 : 1)) {
      return undefined;
    }
    const taken = take(whole) ?? Buffer.alloc(0);
    const decipher = createDecipheriv(
      "aes-256-gcm",
      own ?? Buffer.alloc(32),
      nonceOf(frame, last),
    );
    frame += 1;
    decipher.setAuthTag(taken.subarray(whole - TAG_BYTES));
    const sealed = taken.subarray(LENGTH_BYTES, whole - TAG_BYTES);
    try {
      return Buffer.concat([decipher.update(sealed), decipher.final()]);
    } catch {
      throw spoiled(what);
    }
  }

  function guarded(done: TransformCallback, act: () => void): void {
    try {
      act();
    } catch (error) {
      done(error instanceof Error ? error : spoiled(what));
      return;
    }
    done();
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      guarded(done, () => {
        waiting = Buffer.concat([waiting, chunk]);
        if (!readHeader()) {
          return;
        }
        for (;;) {
          const plain = openFrame(false);
          if (plain === undefined) {
            return;
          }
          this.push(plain);
        }
      });
    },
    flush(done) {
      guarded(done, () => {
        const plain = own === undefined ? undefined : openFrame(true);
        ended = plain !== undefined && waiting.length === 0;
        if (!ended) {
          throw spoiled(what);
        }
        this.push(plain);
      });
    },
  });
}

function spoiled(what: string): Failure {
  return new Failure(
    `the copy of ${what} does not open: it was cut or altered, or made under another key; try another copy, or the key that was shown when this one was made.`,
  );
}
