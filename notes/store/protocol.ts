// The messages between the main thread and a database's worker thread.
import type { StorageFailure } from "../refusal.ts";

/** A request body: in memory when small, else in a file that the main thread removes afterwards. */
export type Body =
  | { readonly kind: "memory"; readonly bytes: Uint8Array }
  | { readonly kind: "file"; readonly path: string; readonly length: number };

export interface SecurityObject {
  readonly admins?: { readonly names?: unknown; readonly roles?: unknown };
  readonly members?: { readonly names?: unknown; readonly roles?: unknown };
}

/** One operation on a database. The members used depend on the operation. */
export interface StoreRequest {
  readonly operation: OperationName;
  readonly query: Readonly<Record<string, string>>;
  readonly id?: string;
  readonly body?: Body;
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
  /** Media types of the `Accept` header, without parameters. */
  readonly accept?: readonly string[];
  /** Whether the caller may write design documents: a server or database admin. */
  readonly admin?: boolean;
  /** How the rows of a changes answer are written. */
  readonly feed?: { readonly lines: boolean };
  readonly maxDocumentSize: number;
}

export type OperationName =
  | "allDocs"
  | "bulkDocs"
  | "bulkGet"
  | "changes"
  | "collect"
  | "compact"
  | "deleteDocument"
  | "deleteLocal"
  | "find"
  | "getDocument"
  | "getLocal"
  | "history"
  | "info"
  | "localDocs"
  | "overview"
  | "postDocument"
  | "putDocument"
  | "putLocal"
  | "putRevsLimit"
  | "putSecurity"
  | "revsDiff"
  | "revsLimit"
  | "space";

/** The end of a changes answer: the token for `since`, the last sequence examined, the rows sent, and those pending. */
export interface ChangesEnd {
  readonly token: string;
  readonly seen: number;
  readonly rows: number;
  readonly pending: number;
}

export type ToWorker =
  | {
      readonly kind: "call";
      readonly call: number;
      readonly request: StoreRequest;
    }
  | { readonly kind: "ack"; readonly call: number }
  | { readonly kind: "cancel"; readonly call: number }
  | { readonly kind: "ping" }
  | { readonly kind: "close" };

export type FromWorker =
  | { readonly kind: "pong" }
  | {
      readonly kind: "ready";
      readonly state: PublicState;
      /** Opened on a full disk. */
      readonly readOnly: boolean;
    }
  | {
      readonly kind: "unusable";
      readonly code: string;
      readonly reason: string;
      readonly detail: string;
      readonly storageFailure: StorageFailure | undefined;
    }
  | {
      readonly kind: "head";
      readonly call: number;
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      /** The whole body, unless `streaming`. */
      readonly body: string | undefined;
      readonly streaming: boolean;
    }
  | {
      readonly kind: "chunk";
      readonly call: number;
      readonly bytes: Uint8Array;
    }
  | {
      readonly kind: "end";
      readonly call: number;
      readonly end: ChangesEnd | undefined;
    }
  | {
      readonly kind: "refused";
      readonly call: number;
      readonly code: string;
      readonly reason: string;
      readonly detail: string | undefined;
      /** Why the database could not be read or written. */
      readonly storageFailure: StorageFailure | undefined;
    }
  | { readonly kind: "state"; readonly state: PublicState }
  | {
      readonly kind: "compacted";
      readonly before: number;
      readonly after: number;
      readonly milliseconds: number;
    }
  | { readonly kind: "closed" };

/** The state of an open database on the main thread. */
export interface PublicState {
  readonly updateSeq: number;
  readonly security: SecurityObject;
  readonly instanceStartTime: string;
  readonly compacting: boolean;
}

export interface WorkerData {
  readonly name: string;
  readonly file: string;
  readonly kind: "vault" | "users";
  /** Seconds since 1970 as text; used only when the file is new. */
  readonly instanceStartTime: string;
  /** PBKDF2 rounds for the passwords of user documents. */
  readonly passwordIterations: number;
  /** Maximum bytes of past versions; unlimited when undefined. */
  readonly historyMaxBytes?: number;
  /** For parts of answers that are too long for the memory. */
  readonly spoolDirectory: string;
}
