import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  openDatabase,
  type Database,
  type DatabaseEvents,
} from "./database.ts";
import {
  openDatabaseUpdates,
  type DatabaseUpdates,
} from "./database-updates.ts";
import { watchIdle } from "./idle.ts";
import { Refusal } from "./refusal.ts";
import { isEmptyFile, UNFINISHED } from "./store/schema.ts";

/** The database of user documents; always there. */
export const USERS = "_users";

const SUFFIX = ".sqlite";
const REMOVED = ".removed-";
/** File names end at 255 bytes; SQLite adds `-wal` to ours. */
const MAX_NAME_BYTES = 238;

/** All databases of the data directory; each is opened when it is asked for and closed when it has not been used for a while. */
export interface Databases {
  readonly names: () => string[];
  readonly open: (name: string) => Promise<Database>;
  readonly create: (name: string) => Promise<void>;
  readonly remove: (name: string) => Promise<void>;
  /** Those that are open now. */
  readonly opened: () => readonly Database[];
  /** Which were created, changed and deleted. */
  readonly updates: DatabaseUpdates;
  /** Names of databases whose thread does not answer. */
  readonly hung: () => string[];
  readonly close: () => Promise<void>;
}

export interface DatabasesOptions {
  readonly directory: string;
  readonly passwordIterations: number;
  readonly historyMaxBytes: number;
  readonly events: Omit<DatabaseEvents, "changed">;
  readonly watchdogMs?: number;
  /** How long an unused database stays open. */
  readonly idleMs: number;
}

const missing = (): Refusal =>
  new Refusal("not_found", "Database does not exist.");

/** Reads the directory, finishes interrupted removals, and makes `_users` when it is not there. */
export async function openDatabases(
  options: DatabasesOptions,
): Promise<Databases> {
  const { directory } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = new Set(await readNames(directory));
  const updates = openDatabaseUpdates([...names]);
  const events: DatabaseEvents = {
    ...options.events,
    changed: (name) => updates.add(name, "updated"),
  };
  const opened = new Map<string, Promise<Database>>();
  const running = new Map<string, Database>();
  const closing = new Map<string, Promise<void>>();
  const busy = new Set<string>();
  let newestStart = 0;

  const open = async (name: string, startTime = "0"): Promise<Database> => {
    if (!names.has(name)) {
      throw missing();
    }
    const known = opened.get(name);
    if (known !== undefined) {
      return await given(known);
    }
    const opening = start(name, startTime);
    opened.set(name, opening);
    const forget = (): void => {
      if (opened.get(name) !== opening) {
        return;
      }
      opened.delete(name);
      running.delete(name);
    };
    // The request after a thread has failed starts another, once the file is free: until then the database says why it is closed.
    opening.then((database) => {
      running.set(name, database);
      void database.exited.then(forget);
    }, forget);
    return await given(opening);
  };

  const given = async (opening: Promise<Database>): Promise<Database> => {
    const database = await opening;
    idle.used(database);
    return database;
  };

  const start = async (
    name: string,
    instanceStartTime: string,
  ): Promise<Database> => {
    await closing.get(name);
    return await openDatabase(
      {
        name,
        file: join(directory, fileOfName(name)),
        kind: name === USERS ? "users" : "vault",
        instanceStartTime,
        passwordIterations: options.passwordIterations,
        historyMaxBytes: options.historyMaxBytes,
      },
      events,
      options.watchdogMs,
    );
  };

  /** Until the file is free, requests wait; then they open it again. */
  const closeIdle = async (database: Database): Promise<void> => {
    const { name } = database;
    opened.delete(name);
    const closed = database.close().then(() => database.exited);
    closing.set(name, closed);
    await closed;
    closing.delete(name);
    if (running.get(name) === database) {
      running.delete(name);
    }
  };

  const idle = watchIdle({
    idleMs: options.idleMs,
    opened: () => running.values(),
    close: (database) => void closeIdle(database),
  });

  const create = async (name: string): Promise<void> => {
    checkName(name);
    if (names.has(name) || busy.has(name)) {
      throw new Refusal(
        "file_exists",
        "The database could not be created, the file already exists.",
      );
    }
    names.add(name);
    // Never the second of an earlier database, so that a database made anew can be told from its former life.
    newestStart = Math.max(Math.floor(Date.now() / 1000), newestStart + 1);
    try {
      await open(name, String(newestStart));
      syncDirectory(directory);
      updates.add(name, "created");
    } catch (failure) {
      names.delete(name);
      throw failure;
    }
  };

  if (!names.has(USERS)) {
    names.add(USERS);
    await open(USERS, String(Math.floor(Date.now() / 1000)));
  }

  return {
    names: () => [...names].sort(),
    open: (name) => open(name),
    create,
    remove: async (name) => {
      if (!names.has(name)) {
        throw missing();
      }
      const database = await open(name);
      names.delete(name);
      busy.add(name);
      try {
        newestStart = Math.max(
          newestStart,
          Number(database.state().instanceStartTime),
        );
        await database.close();
        opened.delete(name);
        running.delete(name);
        await removeFiles(directory, fileOfName(name));
        updates.add(name, "deleted");
      } finally {
        busy.delete(name);
      }
    },
    opened: () => [...running.values()],
    updates,
    hung: () =>
      [...running].flatMap(([name, database]) =>
        database.isHung() ? [name] : [],
      ),
    close: async () => {
      idle.stop();
      updates.close();
      await Promise.all([
        ...closing.values(),
        ...[...opened.values()].map(async (opening) => {
          const database = await opening.catch(() => undefined);
          await database?.close();
        }),
      ]);
    },
  };
}

/** Names of the databases; removes what interrupted removals and creations left. */
async function readNames(directory: string): Promise<string[]> {
  const files = await readdir(directory);
  await Promise.all(
    files
      .filter(
        (file) => file.includes(REMOVED) || file.includes(SUFFIX + UNFINISHED),
      )
      .map((file) => rm(join(directory, file))),
  );
  const names: string[] = [];
  for (const file of files.filter((each) => each.endsWith(SUFFIX))) {
    if (isEmptyFile(join(directory, file))) {
      await removeFiles(directory, file);
    } else {
      names.push(nameOfFile(file));
    }
  }
  return names;
}

/** Throws for a name no database can have. */
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
  // The main file first: without it the others are nothing.
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

function syncDirectory(directory: string): void {
  const handle = openSync(directory, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function fileOfName(name: string): string {
  return name.replaceAll("/", "%2F") + SUFFIX;
}

function nameOfFile(file: string): string {
  return file.slice(0, -SUFFIX.length).replaceAll("%2F", "/");
}
