import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { Answer } from "../../notes/store/answer.ts";
import { piecesText } from "../../notes/store/assemble.ts";
import { replicate } from "../../notes/store/change-document.ts";
import { readDocument } from "../../notes/store/incoming.ts";
import type { Body, FromWorker } from "../../notes/store/protocol.ts";
import {
  disconnect,
  inTransaction,
  openStore,
  type Store,
} from "../../notes/store/store.ts";

/** The store of one database in a temporary directory. */
interface TemporaryStore {
  readonly store: Store;
  readonly directory: string;
  /** Writes a document with its revision or history, as a device pushes it. */
  readonly write: (
    document: Readonly<Record<string, unknown>> & { readonly _id: string },
  ) => Promise<void>;
}

/** A new one for each test of the calling file. `onMessage` receives what stores send to the main thread. */
export function temporaryStore(
  onMessage: (message: FromWorker) => void = () => undefined,
): TemporaryStore {
  let directory: string;
  let store: Store;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hearth-store-"));
    store = openStore(
      {
        name: "vault",
        file: join(directory, "vault.sqlite"),
        kind: "vault",
        instanceStartTime: "1",
        spoolDirectory: directory,
        passwordIterations: 1,
      },
      onMessage,
    );
  });
  afterEach(() => {
    disconnect(store);
    rmSync(directory, { recursive: true });
  });
  return {
    get store() {
      return store;
    },
    get directory() {
      return directory;
    },
    write: async (document) => {
      const incoming = readDocument(Buffer.from(JSON.stringify(document)));
      await inTransaction(store, () =>
        replicate(store, document._id, incoming),
      );
    },
  };
}

/** A request body. */
export function bodyOf(value: unknown): Body {
  return { kind: "memory", bytes: Buffer.from(JSON.stringify(value)) };
}

/** The whole text of an answer. */
export function textOf(answer: Answer): string {
  return "pieces" in answer ? piecesText([...answer.pieces]) : answer.body;
}
