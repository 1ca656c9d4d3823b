import { knownDifferences, type Difference } from "./known-differences.ts";

/**
 * Permitted differences from the recorded responses on any server, and why. Apart from the known differences of the embedded
 * store nothing else may differ, and each entry must be needed by some response.
 */
const tolerated = {
  "member bookmark": "opaque; later requests contain the server's value",
  "member derived_key": "a digest with a random salt",
  "member execution_time_ms": "a duration",
  "member instance_start_time": "when the database was created",
  "member iterations": "the ini of the tests has fewer rounds of PBKDF2",
  "member purge_seq": "opaque; later requests contain the server's value",
  "member salt": "random",
  "member sizes": "bytes on disk",
  "header cache-control": "CouchDB omits it in some errors",
  "header connection": "the test client closes each connection",
  "header content-length": "a server may send any response in chunks",
  "header etag of no document": "opaque",
  "header server": "the name of the server",
  "header transfer-encoding": "a server may send any response in chunks",
  "header x-couch-request-id": "CouchDB omits it in some errors",
  "header x-couchdb-body-time": "a duration",
  "filled strings": "the recording contains only the length of a long string",
  "shortened strings":
    "the recording contains only the length of a long string",
  heartbeats: "they depend on timing",
  "no answer recorded": "the client had disconnected before the response",
} as const satisfies Readonly<Record<string, string>>;

/** Reads that CouchDB served before an overlapping write; the replay sends them before it. */
const READ_BEFORE_WRITE = new Set([
  "c2-live 65",
  "f-plain-vault 64",
  "f-plain-vault 111",
  "f-plain-vault 112",
]);

type Tolerated = keyof typeof tolerated;

export function isTolerated(name: string): name is Tolerated {
  return Object.hasOwn(tolerated, name);
}

/** Permits differences and records which ones occurred. */
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
