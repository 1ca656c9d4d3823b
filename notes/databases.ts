import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../core/durable-file.ts";
import {
  openDatabase,
  type Database,
  type DatabaseEvents,
} from "./database.ts";
import { DatabaseUpdates } from "./database-updates.ts";
import { watchIdle, type IdleWatch } from "./idle.ts";
import { Refusal } from "./refusal.ts";
import { UNFINISHED } from "./store/schema.ts";

/** The database of user documents; it always exists. */
export const USERS = "_users";

const SUFFIX = ".sqlite";
const REMOVED = ".removed-";
/** File names have at most 255 bytes, including `-wal`, which SQLite appends. */
const MAX_NAME_BYTES = 238;

export interface DatabasesOptions {
  readonly directory: string;
  readonly spoolDirectory: string;
  readonly passwordIterations: number;
  readonly historyMaxBytes: number;
  readonly events: Omit<DatabaseEvents, "changed">;
  readonly watchdogMs?: number;
  /** How long an unused database stays open. */
  readonly idleMs: number;
}

const missing = (): Refusal =>
  new Refusal("not_found", "Database does not exist.");

/** Reads the directory, finishes interrupted removals, and creates `_users` if it is missing. */
export async function openDatabases(
  options: DatabasesOptions,
): Promise<Databases> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const databases = new Databases(options, await readNames(options.directory));
  await databases.ensureUsers();
  return databases;
}

/** All databases of the data directory; each is opened at its first use and closed when idle. */
export class Databases {
  /** Databases created, changed and deleted. */
  readonly updates: DatabaseUpdates;
  readonly #options: DatabasesOptions;
  readonly #events: DatabaseEvents;
  readonly #names: Set<string>;
  /** Open or opening. */
  readonly #opened = new Map<string, Promise<Database>>();
  readonly #running = new Map<string, Database>();
  readonly #closing = new Map<string, Promise<void>>();
  /** Being removed. */
  readonly #busy = new Set<string>();
  readonly #idle: IdleWatch;
  readonly #usersListeners: (() => void)[] = [];
  #newestStart = 0;

  constructor(options: DatabasesOptions, names: readonly string[]) {
    this.#options = options;
    this.#names = new Set(names);
    this.updates = new DatabaseUpdates(names);
    this.#events = {
      ...options.events,
      changed: (name) => this.updates.add(name, "updated"),
    };
    this.#idle = watchIdle({
      idleMs: options.idleMs,
      opened: () => this.#running.values(),
      close: (database) => void this.#closeIdle(database),
    });
  }

  names(): string[] {
    return [...this.#names].sort();
  }

  /** The open databases. */
  opened(): readonly Database[] {
    return [...this.#running.values()];
  }

  /** Calls `listener` after every change of `_users`, and when it is opened: changes may have been lost with its previous thread. */
  onUsersChange(listener: () => void): void {
    this.#usersListeners.push(listener);
    this.#running.get(USERS)?.onState(listener);
  }

  /** Names of databases whose thread does not answer. */
  hung(): string[] {
    return [...this.#running].flatMap(([name, database]) =>
      database.isHung() ? [name] : [],
    );
  }

  async open(name: string): Promise<Database> {
    return await this.#open(name, "0");
  }

  async ensureUsers(): Promise<void> {
    if (!this.#names.has(USERS)) {
      this.#names.add(USERS);
      await this.#open(USERS, String(Math.floor(Date.now() / 1000)));
    }
  }

  async create(name: string): Promise<void> {
    checkName(name);
    if (this.#names.has(name) || this.#busy.has(name)) {
      throw new Refusal(
        "file_exists",
        "The database could not be created, the file already exists.",
      );
    }
    this.#names.add(name);
    // Later than that of any earlier database, so that a recreated database differs from the previous one.
    this.#newestStart = Math.max(
      Math.floor(Date.now() / 1000),
      this.#newestStart + 1,
    );
    try {
      await this.#open(name, String(this.#newestStart));
      syncDirectory(this.#options.directory);
      this.updates.add(name, "created");
    } catch (failure) {
      this.#names.delete(name);
      throw failure;
    }
  }

  async remove(name: string): Promise<void> {
    if (!this.#names.has(name)) {
      throw missing();
    }
    // A damaged file cannot be opened, and is removed all the same.
    const database = await this.open(name).catch(() => undefined);
    this.#names.delete(name);
    this.#busy.add(name);
    try {
      this.#newestStart = Math.max(
        this.#newestStart,
        Number(database?.state().instanceStartTime ?? 0),
      );
      await database?.close();
      this.#opened.delete(name);
      this.#running.delete(name);
      await removeFiles(this.#options.directory, fileOfName(name));
      this.updates.add(name, "deleted");
    } catch (failure) {
      // As on a read-only disk: a later creation of that name must not find the old content.
      if (existsSync(join(this.#options.directory, fileOfName(name)))) {
        this.#names.add(name);
      }
      throw failure;
    } finally {
      this.#busy.delete(name);
    }
  }

  async close(): Promise<void> {
    this.#idle.stop();
    this.updates.close();
    await Promise.all([
      ...this.#closing.values(),
      ...[...this.#opened.values()].map(async (opening) => {
        const database = await opening.catch(() => undefined);
        await database?.close();
      }),
    ]);
  }

  async #open(name: string, instanceStartTime: string): Promise<Database> {
    if (!this.#names.has(name)) {
      throw missing();
    }
    const database = await (this.#opened.get(name) ??
      this.#start(name, instanceStartTime));
    this.#idle.used(database);
    return database;
  }

  #start(name: string, instanceStartTime: string): Promise<Database> {
    const opening = this.#startThread(name, instanceStartTime);
    this.#opened.set(name, opening);
    const forget = (): void => {
      if (this.#opened.get(name) === opening) {
        this.#opened.delete(name);
        this.#running.delete(name);
      }
    };
    // After a thread has failed, the next request starts another once the file is released; until then requests get the failure.
    opening.then((database) => {
      this.#running.set(name, database);
      if (name === USERS) {
        this.#listenToUsers(database);
      }
      void database.exited.then(forget);
    }, forget);
    return opening;
  }

  #listenToUsers(users: Database): void {
    for (const listener of this.#usersListeners) {
      users.onState(listener);
      listener();
    }
  }

  async #startThread(
    name: string,
    instanceStartTime: string,
  ): Promise<Database> {
    const { directory, spoolDirectory, passwordIterations, historyMaxBytes } =
      this.#options;
    await this.#closing.get(name);
    return await openDatabase(
      {
        name,
        file: join(directory, fileOfName(name)),
        kind: name === USERS ? "users" : "vault",
        instanceStartTime,
        passwordIterations,
        historyMaxBytes,
        spoolDirectory,
      },
      this.#events,
      this.#options.watchdogMs,
    );
  }

  /** Requests wait until the file is released, then reopen it. */
  async #closeIdle(database: Database): Promise<void> {
    const { name } = database;
    this.#opened.delete(name);
    const closed = database.close().then(() => database.exited);
    this.#closing.set(name, closed);
    await closed;
    this.#closing.delete(name);
    if (this.#running.get(name) === database) {
      this.#running.delete(name);
    }
  }
}

/** Returns the names of the databases; removes the files of interrupted removals and creations. */
async function readNames(directory: string): Promise<string[]> {
  const files = await readdir(directory);
  await Promise.all(
    files
      .filter(
        (file) => file.includes(REMOVED) || file.includes(SUFFIX + UNFINISHED),
      )
      .map((file) => rm(join(directory, file))),
  );
  return files.filter((file) => file.endsWith(SUFFIX)).map(nameOfFile);
}

/** Throws for an invalid database name. */
export function checkName(name: string): void {
  if (!/^[a-z][a-z0-9_$()+/-]*$/.test(name)) {
    throw new Refusal(
      "illegal_database_name",
      `Name: '${name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter.`,
    );
  }
  if (Buffer.byteLength(fileOfName(name)) - SUFFIX.length > MAX_NAME_BYTES) {
    throw new Refusal(
      "database_name_too_long",
      `At least one path segment of \`${name}\` is too long.`,
    );
  }
}

async function removeFiles(directory: string, file: string): Promise<void> {
  // The main file first: the others are useless without it.
  const parts = [file, `${file}-wal`, `${file}-shm`].map((part) => ({
    part: join(directory, part),
    removed: join(directory, REMOVED + randomUUID()),
  }));
  for (const { part, removed } of parts) {
    await rename(part, removed).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== "ENOENT") {
        throw failure;
      }
    });
  }
  syncDirectory(directory);
  for (const { removed } of parts) {
    await rm(removed, { force: true });
  }
}

function fileOfName(name: string): string {
  return name.replaceAll("/", "%2F") + SUFFIX;
}

function nameOfFile(file: string): string {
  return file.slice(0, -SUFFIX.length).replaceAll("%2F", "/");
}
