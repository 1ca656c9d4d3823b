import { createHmac, pbkdf2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(pbkdf2);

/** A stored PBKDF2 hash: the salt is used as text, not decoded; the key is 32 bytes in hex. */
export interface PasswordHash {
  readonly prf: "sha1" | "sha256";
  readonly key: string;
  readonly salt: string;
  readonly iterations: number;
}

const FORMAT = /^-pbkdf2:(sha256)-([0-9a-f]{64}),([^,]+),([1-9]\d{0,8})$/;

/** Whether a text is an admin's password hash in CouchDB's format. */
export function isPasswordHash(text: string): boolean {
  return FORMAT.test(text);
}

/** Reads `-pbkdf2:sha256-<key>,<salt>,<iterations>`. */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const match = FORMAT.exec(text);
  return match === null
    ? undefined
    : {
        prf: "sha256",
        key: match[2]!,
        salt: match[3]!,
        iterations: Number(match[4]),
      };
}

/** Hashes a password for the ini file. */
export async function hashPassword(
  password: string,
  iterations: number,
): Promise<string> {
  const salt = randomBytes(16).toString("hex");
  const key = await derive(password, salt, iterations, 32, "sha256");
  return `-pbkdf2:sha256-${key.toString("hex")},${salt},${iterations}`;
}

/** Checks passwords against hashes; correct ones are cached as keyed digests, since PBKDF2 takes a large part of a second. */
interface PasswordCheck {
  /** The keyed digest of a password in this process. */
  readonly digest: (password: string) => string;
  /** Whether this exact password was correct before. */
  readonly isRemembered: (password: string, hash: PasswordHash) => boolean;
  /** Derives the key; without a hash the same work is done and the result is false. */
  readonly derive: (
    password: string,
    hash: PasswordHash | undefined,
  ) => Promise<boolean>;
}

/** `iterations` is used for a user without a hash. */
export function openPasswordCheck(iterations: () => number): PasswordCheck {
  const secret = randomBytes(32);
  const MAX_REMEMBERED = 1000;
  const right = new Map<string, Buffer>();
  const digestOf = (password: string): Buffer =>
    createHmac("sha256", secret).update(password).digest();
  const nameOf = (hash: PasswordHash): string => `${hash.salt}:${hash.key}`;
  return {
    digest: (password) => digestOf(password).toString("base64"),
    isRemembered: (password, hash) => {
      const remembered = right.get(nameOf(hash));
      return (
        remembered !== undefined &&
        timingSafeEqual(remembered, digestOf(password))
      );
    },
    derive: async (password, hash) => {
      const against = hash ?? missingHash(iterations());
      const expected = Buffer.from(against.key, "hex");
      const key = await derive(
        password,
        against.salt,
        against.iterations,
        expected.length,
        against.prf,
      );
      if (!timingSafeEqual(key, expected) || hash === undefined) {
        return false;
      }
      if (right.size >= MAX_REMEMBERED) {
        right.clear();
      }
      right.set(nameOf(hash), digestOf(password));
      return true;
    },
  };
}

function missingHash(iterations: number): PasswordHash {
  return {
    prf: "sha256",
    key: "0".repeat(64),
    salt: "0".repeat(32),
    iterations,
  };
}
