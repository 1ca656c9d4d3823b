import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import type { Couch } from "./couch.ts";
import { asExpected } from "./couch-answers.ts";
import { Database, type CouchDocument } from "./database.ts";

const PREFIX = "org.couchdb.user:";
const rows = z.looseObject({
  rows: z.array(
    z.looseObject({
      doc: z.looseObject({ _id: z.string(), _rev: z.string() }),
    }),
  ),
});

const derive = promisify(pbkdf2);
/** https://docs.couchdb.org/en/stable/intro/security.html#users-documents */
const hashed = z.looseObject({
  password_scheme: z.literal("pbkdf2"),
  pbkdf2_prf: z
    .literal(["sha", "sha224", "sha256", "sha384", "sha512"])
    .default("sha"),
  derived_key: z.string(),
  salt: z.string(),
  iterations: z.int().positive(),
});

/** Whether a user's document has the hash of this password; false for a hash of another scheme. */
export async function hasPassword(
  document: CouchDocument,
  password: string,
): Promise<boolean> {
  const { success, data } = hashed.safeParse(document);
  if (!success) {
    return false;
  }
  const { pbkdf2_prf: prf, derived_key: key, salt, iterations } = data;
  const digest = prf === "sha" ? "sha1" : prf;
  const bytes = key.length / 2;
  const derived = await derive(password, salt, iterations, bytes, digest);
  return derived.toString("hex") === key;
}

/** The store's users, as documents of `_users`. */
export interface Users {
  /** Creates the user, or sets the password of an existing one; only the admin can read the document. */
  readonly save: (name: string, password: string) => Promise<void>;
  /** True if it existed. */
  readonly remove: (name: string) => Promise<boolean>;
  readonly exists: (name: string) => Promise<boolean>;
  /** Every user with the hash of its password. */
  readonly all: () => Promise<readonly CouchDocument[]>;
  /**
   * Restores a user from a backup, including the hash. An existing one is kept unless `replace` is set. True if the password
   * has changed.
   */
  readonly putBack: (
    document: CouchDocument,
    replace: boolean,
  ) => Promise<boolean>;
}

export function openUsers(couch: Couch): Users {
  const database = new Database(couch, "_users");
  const find = (name: string) => database.document(PREFIX + name);
  return {
    save: async (name, password) => {
      const known = await find(name);
      await database.put(PREFIX + name, {
        ...(known === undefined ? {} : { _rev: known._rev }),
        name,
        password,
        roles: [],
        type: "user",
      });
    },
    remove: async (name) => {
      const known = await find(name);
      if (known === undefined) {
        return false;
      }
      await database.write([
        { _id: known._id, _rev: known._rev, _deleted: true },
      ]);
      return true;
    },
    exists: async (name) => (await find(name)) !== undefined,
    all: async () => {
      const query = new URLSearchParams({
        include_docs: "true",
        startkey: JSON.stringify(PREFIX),
        endkey: JSON.stringify(`${PREFIX}\uffff`),
      });
      const answer = asExpected(
        rows,
        await couch.ask("GET", `/_users/_all_docs?${query.toString()}`),
      );
      return answer.rows.map(({ doc }) => doc as unknown as CouchDocument);
    },
    putBack: async (document, replace) => {
      const there = await database.document(document._id);
      const same = there?.["derived_key"] === document["derived_key"];
      if (there !== undefined && (same || !replace)) {
        return false;
      }
      const { _rev: _revision, ...rest } = document;
      await database.put(document._id, {
        ...rest,
        ...(there === undefined ? {} : { _rev: there._rev }),
      });
      return true;
    },
  };
}
