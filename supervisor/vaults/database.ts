import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { CouchRefusal, type Couch, type CouchAsk } from "./couch.ts";

/** A document as the store gives it, with its revision members. */
export interface CouchDocument {
  readonly _id: string;
  readonly _rev: string;
  readonly _deleted?: boolean;
  readonly _conflicts?: readonly string[];
  readonly _revisions?: {
    readonly start: number;
    readonly ids: readonly string[];
  };
  readonly [member: string]: unknown;
}

export interface Security {
  readonly admins: Members;
  readonly members: Members;
}
interface Members {
  readonly names: readonly string[];
  readonly roles: readonly string[];
}

const info = z.looseObject({
  update_seq: z.union([z.string(), z.number()]).transform(String),
  doc_count: z.number(),
  doc_del_count: z.number(),
  compact_running: z.boolean(),
  instance_start_time: z.string(),
  sizes: z.looseObject({ file: z.number(), active: z.number() }),
});
const list = z.array(z.string()).default([]);
const members = z
  .looseObject({ names: list, roles: list })
  .prefault({})
  .transform(({ names, roles }) => ({ names, roles }));
const security = z
  .looseObject({ admins: members, members })
  .transform(({ admins, members }) => ({ admins, members }));
const changesPage = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string(),
      changes: z.array(z.looseObject({ rev: z.string() })),
      deleted: z.boolean().optional(),
      doc: z.unknown().optional(),
    }),
  ),
  last_seq: z.union([z.string(), z.number()]).transform(String),
  pending: z.number().default(0),
});
const bulkGot = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string(),
      docs: z.array(
        z.looseObject({
          ok: z.looseObject({ _id: z.string(), _rev: z.string() }).optional(),
          error: z.unknown().optional(),
        }),
      ),
    }),
  ),
});
const found = z.looseObject({
  docs: z.array(z.looseObject({ _id: z.string(), _rev: z.string() })),
  bookmark: z.string().default("nil"),
});
const keyedRows = z.looseObject({
  rows: z.array(
    z.looseObject({
      id: z.string().optional(),
      value: z.looseObject({ deleted: z.boolean().optional() }).nullish(),
    }),
  ),
});
const written = z.array(
  z.looseObject({
    id: z.string().optional(),
    error: z.string().optional(),
    reason: z.string().optional(),
  }),
);

export type DatabaseInfo = Readonly<z.output<typeof info>>;
export type ChangesPage = Readonly<z.output<typeof changesPage>>;

export type ChangesAsk = CouchAsk & {
  readonly since: string;
  readonly limit: number;
  /** Every leaf of a row, not the winner alone. */
  readonly allLeaves?: boolean;
  readonly selector?: Readonly<Record<string, unknown>>;
  /** Members to include of each document. */
  readonly fields?: readonly string[];
  /** Wait this long for a change where there is none. */
  readonly longpollMs?: number;
};

/** One database of the store; every call throws as `Couch.ask` does. */
export interface Database {
  readonly name: string;
  /** Undefined when there is no such database. */
  readonly info: (options?: CouchAsk) => Promise<DatabaseInfo | undefined>;
  readonly create: () => Promise<void>;
  /** True when it was there. */
  readonly drop: (options?: CouchAsk) => Promise<boolean>;
  readonly security: () => Promise<Security>;
  readonly secure: (security: Security) => Promise<void>;
  readonly document: (id: string) => Promise<CouchDocument | undefined>;
  readonly put: (
    id: string,
    document: Readonly<Record<string, unknown>>,
  ) => Promise<void>;
  /** All leaves of a document, deleted ones too. */
  readonly leaves: (id: string) => Promise<readonly CouchDocument[]>;
  readonly changes: (ask: ChangesAsk) => Promise<ChangesPage>;
  /** The named revisions with their histories, without a name every leaf; those that are gone are left out. */
  readonly revisions: (
    wanted: readonly { readonly id: string; readonly rev?: string }[],
    options?: CouchAsk,
  ) => Promise<readonly CouchDocument[]>;
  /** Writes documents; with `asTheyAre` their revisions and histories are kept. Throws for the first that is refused. */
  readonly write: (
    documents: readonly Readonly<Record<string, unknown>>[],
    options?: CouchAsk & { readonly asTheyAre?: boolean },
  ) => Promise<void>;
  readonly find: (
    query: Readonly<Record<string, unknown>>,
    options?: CouchAsk,
  ) => Promise<readonly CouchDocument[]>;
  /** Whether a document lies between two ids. */
  readonly hasBetween: (first: string, last: string) => Promise<boolean>;
  /** Those of the named documents that are there and not deleted. */
  readonly live: (ids: readonly string[]) => Promise<readonly string[]>;
  readonly compact: () => Promise<void>;
}

/** The longest wait for answers that carry documents. */
const LONG_ANSWER_MS = 300_000;

export function openDatabase(couch: Couch, name: string): Database {
  const base = `/${encodeURIComponent(name)}`;
  const document = async (id: string) =>
    (await couch.look(`${base}/${pathOf(id)}`)) as CouchDocument | undefined;
  return {
    name,
    info: async (options) => {
      const answer = await couch.look(base, options);
      return answer === undefined ? undefined : asExpected(info, answer);
    },
    create: async () => {
      await couch.ask("PUT", base);
    },
    drop: async (options) => {
      try {
        await couch.ask("DELETE", base, options);
        return true;
      } catch (error) {
        if (error instanceof CouchRefusal && error.status === 404) {
          return false;
        }
        throw error;
      }
    },
    security: async () =>
      asExpected(security, await couch.ask("GET", `${base}/_security`)),
    secure: async (rules) => {
      await couch.ask("PUT", `${base}/_security`, { body: rules });
    },
    document,
    put: async (id, content) => {
      await couch.ask("PUT", `${base}/${pathOf(id)}`, { body: content });
    },
    leaves: async (id) => {
      const answer = (await couch.ask(
        "GET",
        `${base}/${pathOf(id)}?open_revs=all`,
      )) as readonly { readonly ok?: CouchDocument }[];
      return answer.flatMap(({ ok }) => (ok === undefined ? [] : [ok]));
    },
    changes: async ({
      since,
      limit,
      allLeaves,
      selector,
      fields,
      longpollMs,
      ...options
    }) => {
      const query = new URLSearchParams({
        since,
        limit: String(limit),
        ...(allLeaves === true ? { style: "all_docs" } : {}),
        ...(selector === undefined ? {} : { filter: "_selector" }),
        ...(fields === undefined ? {} : { include_docs: "true" }),
        ...(longpollMs === undefined
          ? {}
          : { feed: "longpoll", timeout: String(longpollMs) }),
      });
      return asExpected(
        changesPage,
        await couch.ask("POST", `${base}/_changes?${query.toString()}`, {
          timeoutMs: LONG_ANSWER_MS,
          ...options,
          body:
            selector === undefined
              ? {}
              : { selector, ...(fields === undefined ? {} : { fields }) },
        }),
      );
    },
    revisions: async (wanted, options) => {
      const { results } = asExpected(
        bulkGot,
        await couch.ask("POST", `${base}/_bulk_get?revs=true`, {
          timeoutMs: LONG_ANSWER_MS,
          ...options,
          body: { docs: wanted },
        }),
      );
      const documents = results.flatMap(({ docs }) =>
        docs.flatMap(({ ok }) => (ok === undefined ? [] : [ok])),
      );
      return documents as unknown as readonly CouchDocument[];
    },
    write: async (documents, { asTheyAre = false, ...options } = {}) => {
      const answer = asExpected(
        written,
        await couch.ask("POST", `${base}/_bulk_docs`, {
          timeoutMs: LONG_ANSWER_MS,
          ...options,
          body: {
            docs: documents,
            ...(asTheyAre ? { new_edits: false } : {}),
          },
        }),
      );
      const refused = answer.find(({ error }) => error !== undefined);
      if (refused !== undefined) {
        throw new CouchRefusal(
          409,
          refused.error ?? "",
          refused.reason ?? "",
          `document ${refused.id ?? ""} of ${name}`,
        );
      }
    },
    find: async (query, options) => {
      const { docs } = asExpected(
        found,
        await couch.ask("POST", `${base}/_find`, {
          timeoutMs: LONG_ANSWER_MS,
          ...options,
          body: query,
        }),
      );
      return docs as unknown as readonly CouchDocument[];
    },
    hasBetween: async (first, last) => {
      const query = new URLSearchParams({
        startkey: JSON.stringify(first),
        endkey: JSON.stringify(last),
        limit: "1",
      });
      const { rows } = (await couch.ask(
        "GET",
        `${base}/_all_docs?${query.toString()}`,
      )) as { readonly rows: readonly unknown[] };
      return rows.length > 0;
    },
    live: async (keys) => {
      const { rows } = asExpected(
        keyedRows,
        await couch.ask("POST", `${base}/_all_docs`, { body: { keys } }),
      );
      return rows.flatMap(({ id, value }) =>
        id === undefined || value?.deleted === true ? [] : [id],
      );
    },
    compact: async () => {
      await couch.ask("POST", `${base}/_compact`);
    },
  };
}

/** All databases that hold notes: not the store's own, and not our scratch ones. */
export async function vaultNames(couch: Couch): Promise<readonly string[]> {
  const names = asExpected(
    z.array(z.string()),
    await couch.ask("GET", "/_all_dbs"),
  );
  return names.filter((name) => !name.startsWith("_") && !isScratch(name));
}

/** Databases of restore drills begin so; no vault may. */
export const SCRATCH_PREFIX = "hearth_drill_";

export function isScratch(name: string): boolean {
  return name.startsWith(SCRATCH_PREFIX);
}

/** The number in front of an update sequence; how far something is can be told by it. */
export function sequenceNumber(sequence: string): number {
  return Number.parseInt(sequence, 10) || 0;
}

/** The answer in its expected shape; throws a Failure where a CouchDB would never say so. */
export function asExpected<T extends z.ZodType>(
  schema: T,
  answer: unknown,
): z.output<T> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) {
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw new Failure(
    `what answers as the notes store is no CouchDB: in an answer, ${issue?.path.join(".") || "the whole"} is not as expected (${issue?.message ?? ""}).`,
  );
}

function pathOf(id: string): string {
  return id.startsWith("_local/")
    ? `_local/${encodeURIComponent(id.slice("_local/".length))}`
    : encodeURIComponent(id);
}
