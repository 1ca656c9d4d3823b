import { knownDifferences, type Difference } from "./known-differences.ts";

/**
 * What an answer may differ in from the recorded one, on any server, and why. Beside the known differences of the embedded
 * store nothing else may differ, and each entry must be needed by some answer.
 */
const tolerated = {
  "member bookmark": "opaque; later requests carry the server's own",
  "member derived_key": "a digest with a random salt",
  "member execution_time_ms": "a time",
  "member instance_start_time": "when the database was created",
  "member iterations": "the ini of the tests has fewer rounds of PBKDF2",
  "member purge_seq": "opaque; later requests carry the server's own",
  "member salt": "random",
  "member sizes": "bytes on disk",
  "header cache-control": "CouchDB leaves it out of some errors",
  "header connection": "the client of the tests closes each connection",
  "header content-length": "a server may send any answer in chunks",
  "header etag of no document": "opaque",
  "header server": "the name of the server",
  "header transfer-encoding": "a server may send any answer in chunks",
  "header x-couch-request-id": "CouchDB leaves it out of some errors",
  "header x-couchdb-body-time": "a time",
  "filled strings": "the recording has the length of a long string alone",
  "shortened strings": "the recording has the length of a long string alone",
  heartbeats: "a matter of time",
  "no answer recorded": "the client had left before it came",
} as const satisfies Readonly<Record<string, string>>;

/** Reads of clients that CouchDB answered from before the write that they overlapped; the replay sends them before it. */
const READ_BEFORE_WRITE = new Set([
  "c2-live 65",
  "f-plain-vault 64",
  "f-plain-vault 111",
  "f-plain-vault 112",
]);

export type Tolerated = keyof typeof tolerated;

export function isTolerated(name: string): name is Tolerated {
  return Object.hasOwn(tolerated, name);
}

/** Says what may differ, and counts what did. */
export interface Tolerance {
  readonly use: (name: Tolerated) => void;
  readonly readBeforeWrite: (name: string) => boolean;
  /** The known difference of a probe or a request. */
  readonly difference: (name: string) => Difference | undefined;
  readonly unused: () => string[];
}

export function countTolerated(embedded: boolean): Tolerance {
  const differences = embedded ? knownDifferences : {};
  const unused = new Set([
    ...Object.keys(tolerated),
    ...Object.keys(differences),
    ...READ_BEFORE_WRITE,
  ]);
  return {
    use: (name) => void unused.delete(name),
    readBeforeWrite: (name) =>
      READ_BEFORE_WRITE.has(name) && (unused.delete(name) || true),
    difference: (name) => {
      unused.delete(name);
      return differences[name];
    },
    unused: () => [...unused],
  };
}
