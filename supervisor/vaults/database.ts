import { z } from "zod";
import {
  asExpected,
  bulkGot,
  changesPage,
  found,
  info,
  keyedRows,
  localRows,
  security,
  written,
  type ChangesPage,
  type DatabaseInfo,
  type LocalDocument,
} from "./couch-answers.ts";
import { CouchRefusal, type Couch, type CouchAsk } from "./couch.ts";
import { asUnreadable } from "./unreadable-vault.ts";

/** A document as returned by the store, with its revision members. */
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

type ChangesAsk = CouchAsk & {
  readonly since: string;
  readonly limit: number;
  /** Every leaf of a row, not only the winner. */
  readonly allLeaves?: boolean;
  /** The newest change first. */
  readonly descending?: boolean;
  readonly selector?: Readonly<Record<string, unknown>>;
  /** Members to include of each document. */
  readonly fields?: readonly string[];
  /** Wait this long for a change if there is none. */
  readonly longpollMs?: number;
};

/** Beside the access rules, which no member can write. */
const RESTORING = "hearth_restoring";
const BLOCKED = "hearth_blocked";

/** Deadline for answers with documents. */
const LONG_ANSWER_MS = 300_000;

const PAGE_ROWS = 500;

/** One database of the store; all methods throw like `Couch.ask`. */
export class Database {
  readonly name: string;
  readonly #couch: Couch;
  readonly #base: string;

  constructor(couch: Couch, name: string) {
    this.name = name;
    this.#couch = couch;
    this.#base = `/${encodeURIComponent(name)}`;
  }

  /** Undefined if the database does not exist. */
  async info(options?: CouchAsk): Promise<DatabaseInfo | undefined> {
    const answer = await this.#couch.find(this.#base, options);
    return answer === undefined ? undefined : asExpected(info, answer);
  }

  async create(): Promise<void> {
    await this.#couch.ask("PUT", this.#base);
  }

  /** True if the database existed. */
  async drop(): Promise<boolean> {
    try {
      await this.#couch.ask("DELETE", this.#base);
      return true;
    } catch (error) {
      if (error instanceof CouchRefusal && error.status === 404) {
        return false;
      }
      throw error;
    }
  }

  async security(): Promise<Security> {
    return asExpected(
      security,
      await this.#couch.ask("GET", `${this.#base}/_security`),
    );
  }

  /** Sets the access rules, with or without the mark of a restore that has not completed the database. */
  async secure(
    rules: Security,
    { restoring = false }: { readonly restoring?: boolean } = {},
  ): Promise<void> {
    await this.#couch.ask("PUT", `${this.#base}/_security`, {
      body: { ...rules, ...(restoring ? { [RESTORING]: true } : {}) },
    });
  }

  /** Sets rules that block access, and keeps those before that beside them. */
  async block(rules: Security, before: Security): Promise<void> {
    await this.#couch.ask("PUT", `${this.#base}/_security`, {
      body: { ...rules, [BLOCKED]: before },
    });
  }

  /** The rules before access was blocked; undefined if it is not. */
  async rulesBeforeBlock(): Promise<Security | undefined> {
    const rules = await this.#couch.ask("GET", `${this.#base}/_security`);
    const parsed = security.safeParse(
      (rules as { [BLOCKED]?: unknown })[BLOCKED],
    );
    return parsed.success ? parsed.data : undefined;
  }

  /** Whether it has the mark of an incomplete restore. False if it does not exist. */
  async isRestoring(): Promise<boolean> {
    const rules = await this.#couch
      .find(`${this.#base}/_security`)
      .catch(asUnreadable);
    return (
      (rules as { [RESTORING]?: unknown } | undefined)?.[RESTORING] === true
    );
  }

  async document(id: string): Promise<CouchDocument | undefined> {
    const answer = await this.#couch.find(this.#pathOf(id));
    return answer as CouchDocument | undefined;
  }

  async put(
    id: string,
    content: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    await this.#couch.ask("PUT", this.#pathOf(id), { body: content });
  }

  /** All `_local` documents, which clients keep for themselves. */
  async locals(options?: CouchAsk): Promise<readonly LocalDocument[]> {
    const { rows } = asExpected(
      localRows,
      await this.#couch.ask(
        "GET",
        `${this.#base}/_local_docs?include_docs=true`,
        options,
      ),
    );
    return rows;
  }

  /** All leaves of a document, including deleted ones. */
  async leaves(id: string): Promise<readonly CouchDocument[]> {
    const answer = (await this.#couch.ask(
      "GET",
      `${this.#pathOf(id)}?open_revs=all`,
    )) as readonly { readonly ok?: CouchDocument }[];
    return answer.flatMap(({ ok }) => (ok === undefined ? [] : [ok]));
  }

  async changes({
    since,
    limit,
    allLeaves,
    descending,
    selector,
    fields,
    longpollMs,
    ...options
  }: ChangesAsk): Promise<ChangesPage> {
    const query = new URLSearchParams({
      since,
      limit: String(limit),
      ...(allLeaves === true ? { style: "all_docs" } : {}),
      ...(descending === true ? { descending: "true" } : {}),
      ...(selector === undefined ? {} : { filter: "_selector" }),
      ...(fields === undefined ? {} : { include_docs: "true" }),
      ...(longpollMs === undefined
        ? {}
        : { feed: "longpoll", timeout: String(longpollMs) }),
    });
    const body =
      selector === undefined
        ? {}
        : { selector, ...(fields === undefined ? {} : { fields }) };
    return asExpected(
      changesPage,
      await this.#askLong(`_changes?${query.toString()}`, body, options),
    );
  }

  /** The feed up to its current end, page by page. */
  async *changePages(
    ask: Omit<ChangesAsk, "limit">,
  ): AsyncGenerator<ChangesPage> {
    let page: ChangesPage | undefined;
    do {
      const since = page?.last_seq ?? ask.since;
      page = await this.changes({ ...ask, since, limit: PAGE_ROWS });
      yield page;
    } while (page.results.length === PAGE_ROWS);
  }

  /** The named revisions with their histories, or every leaf where no revision is named; missing revisions are left out. */
  async revisions(
    wanted: readonly { readonly id: string; readonly rev?: string }[],
    options?: CouchAsk,
  ): Promise<readonly CouchDocument[]> {
    const body = { docs: wanted };
    const { results } = asExpected(
      bulkGot,
      await this.#askLong("_bulk_get?revs=true", body, options),
    );
    const documents = results.flatMap(({ docs }) =>
      docs.flatMap(({ ok }) => (ok === undefined ? [] : [ok])),
    );
    return documents as unknown as readonly CouchDocument[];
  }

  /** Writes documents; `keepRevisions` keeps their revisions and histories. Throws for the first rejected document. */
  async write(
    documents: readonly Readonly<Record<string, unknown>>[],
    {
      keepRevisions = false,
      ...options
    }: CouchAsk & { readonly keepRevisions?: boolean } = {},
  ): Promise<void> {
    const body = {
      docs: documents,
      ...(keepRevisions ? { new_edits: false } : {}),
    };
    const answer = asExpected(
      written,
      await this.#askLong("_bulk_docs", body, options),
    );
    const rejected = answer.find(({ error }) => error !== undefined);
    if (rejected !== undefined) {
      throw new CouchRefusal(
        409,
        rejected.error ?? "",
        rejected.reason ?? "",
        `document ${rejected.id ?? ""} of ${this.name}`,
      );
    }
  }

  async find(
    query: Readonly<Record<string, unknown>>,
    options?: CouchAsk,
  ): Promise<readonly CouchDocument[]> {
    const { docs } = asExpected(
      found,
      await this.#askLong("_find", query, options),
    );
    return docs as unknown as readonly CouchDocument[];
  }

  /** The first document between two ids; undefined if there is none. */
  async firstBetween(
    first: string,
    last: string,
  ): Promise<CouchDocument | undefined> {
    const query = new URLSearchParams({
      startkey: JSON.stringify(first),
      endkey: JSON.stringify(last),
      include_docs: "true",
      limit: "1",
    });
    const { rows } = (await this.#couch.ask(
      "GET",
      `${this.#base}/_all_docs?${query.toString()}`,
    )) as { readonly rows: readonly { readonly doc: CouchDocument }[] };
    return rows[0]?.doc;
  }

  /** The ids among `keys` whose documents exist and are not deleted. */
  async live(keys: readonly string[]): Promise<readonly string[]> {
    const { rows } = asExpected(
      keyedRows,
      await this.#couch.ask("POST", `${this.#base}/_all_docs`, {
        body: { keys },
      }),
    );
    return rows.flatMap(({ id, value }) =>
      id === undefined || value?.deleted === true ? [] : [id],
    );
  }

  async compact(): Promise<void> {
    await this.#couch.ask("POST", `${this.#base}/_compact`);
  }

  #pathOf(id: string): string {
    const local = "_local/";
    const path = id.startsWith(local)
      ? local + encodeURIComponent(id.slice(local.length))
      : encodeURIComponent(id);
    return `${this.#base}/${path}`;
  }

  #askLong(
    path: string,
    body: unknown,
    options: CouchAsk | undefined,
  ): Promise<unknown> {
    return this.#couch.ask("POST", `${this.#base}/${path}`, {
      timeoutMs: LONG_ANSWER_MS,
      ...options,
      body,
    });
  }
}

/** The vendor name that the embedded store reports. */
const EMBEDDED_VENDOR = "Hearth notes";
const welcome = z.looseObject({ vendor: z.looseObject({ name: z.string() }) });

/** Whether the server is Hearth's own store. */
export async function isEmbedded(couch: Couch): Promise<boolean> {
  const answer = welcome.safeParse(await couch.ask("GET", "/"));
  return answer.success && answer.data.vendor.name === EMBEDDED_VENDOR;
}

/** All databases with notes: without the store's own and scratch databases. */
export async function vaultNames(couch: Couch): Promise<readonly string[]> {
  const names = asExpected(
    z.array(z.string()),
    await couch.ask("GET", "/_all_dbs"),
  );
  return names.filter((name) => !name.startsWith("_") && !isScratch(name));
}

/** Prefix of the databases of restore drills, reserved for them. */
export const SCRATCH_PREFIX = "hearth_drill_";

export function isScratch(name: string): boolean {
  return name.startsWith(SCRATCH_PREFIX);
}

/** The number at the start of an update sequence, which measures progress. */
export function sequenceNumber(sequence: string): number {
  return Number.parseInt(sequence, 10) || 0;
}
