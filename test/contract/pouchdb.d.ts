// The little of PouchDB that the tests use; its packages bring no types.
interface PouchDocument {
  readonly _id: string;
  readonly _rev?: string;
  readonly [member: string]: unknown;
}

interface PouchReplication extends Promise<unknown> {
  cancel(): void;
  on(event: string, listener: (value: unknown) => void): PouchReplication;
}

declare class Pouch {
  static plugin(plugin: unknown): typeof Pouch;
  constructor(name: string, options?: Readonly<Record<string, unknown>>);
  put(document: PouchDocument): Promise<{ readonly rev: string }>;
  get(
    id: string,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<PouchDocument & { readonly _conflicts?: readonly string[] }>;
  remove(id: string, rev: string): Promise<unknown>;
  bulkDocs(documents: readonly PouchDocument[]): Promise<unknown>;
  allDocs(options?: Readonly<Record<string, unknown>>): Promise<{
    readonly rows: readonly {
      readonly id: string;
      readonly value: { readonly rev: string };
      readonly doc?: PouchDocument;
    }[];
  }>;
  sync(
    other: Pouch,
    options?: Readonly<Record<string, unknown>>,
  ): PouchReplication;
  changes(options: Readonly<Record<string, unknown>>): PouchReplication;
  replicate: {
    to(
      other: Pouch,
      options?: Readonly<Record<string, unknown>>,
    ): PouchReplication;
    from(
      other: Pouch,
      options?: Readonly<Record<string, unknown>>,
    ): PouchReplication;
  };
  destroy(): Promise<void>;
  close(): Promise<void>;
}

declare module "pouchdb-core" {
  export { Pouch as default };
}
declare module "pouchdb-adapter-http" {
  const plugin: unknown;
  export { plugin as default };
}
declare module "pouchdb-adapter-memory" {
  const plugin: unknown;
  export { plugin as default };
}
declare module "pouchdb-replication" {
  const plugin: unknown;
  export { plugin as default };
}
