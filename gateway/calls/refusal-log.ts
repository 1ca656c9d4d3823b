import type { Logger } from "pino";
import { HOUR_MS } from "../../core/duration.ts";
import type { Pool } from "../database/pool.ts";
import {
  insertRefusals,
  KEPT_REFUSALS,
  type Refused,
  type RefusedHour,
} from "../database/refusals.ts";

const FLUSH_AFTER_MS = 500;
/** Limits of what waits in memory while the database is unavailable. */
const MAX_KEYS = 1_000;
const MAX_HOURS = 10_000;
const MAX_MESSAGE_CHARACTERS = 500;
const MAX_MODEL_CHARACTERS = 256;

/** Writes rejected calls to the database in batches, at most two per second; calls never wait for it. */
export class RejectionLog {
  readonly #pool: Pool;
  readonly #log: Logger;
  /** The latest ones of each key. */
  #latest = new Map<string, Refused[]>();
  #hours = new Map<string, RefusedHour>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | null = null;
  #stopped = false;

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
  }

  record(refused: Refused): void {
    this.#note({
      ...refused,
      model:
        refused.model?.slice(0, MAX_MODEL_CHARACTERS).toWellFormed() ?? null,
      message: refused.message.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed(),
    });
    const { at, apiKey, type } = refused;
    const hour = at - (at % HOUR_MS);
    this.#count({ hour, apiKey, type, count: 1, lastAt: at });
    this.#schedule();
  }

  /** Writes what was recorded to the database; after a failure it stays for the next time. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = (this.#writing ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#write())
      .finally(() => (this.#writing = null));
    return this.#writing;
  }

  async stop(): Promise<void> {
    await this.flush().catch(() => undefined);
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #note(refused: Refused): void {
    const ofKey = this.#latest.get(refused.apiKey);
    if (ofKey === undefined) {
      if (this.#latest.size < MAX_KEYS) {
        this.#latest.set(refused.apiKey, [refused]);
      }
      return;
    }
    ofKey.push(refused);
    if (ofKey.length > KEPT_REFUSALS) {
      ofKey.shift();
    }
  }

  #count(added: RefusedHour): void {
    const { hour, apiKey, type } = added;
    const id = `${hour} ${type} ${apiKey}`;
    const known = this.#hours.get(id);
    if (known === undefined && this.#hours.size >= MAX_HOURS) {
      return;
    }
    this.#hours.set(id, {
      ...added,
      count: added.count + (known?.count ?? 0),
      lastAt: Math.max(added.lastAt, known?.lastAt ?? 0),
    });
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#stopped) {
      return;
    }
    this.#timer = setTimeout(() => {
      this.flush().catch((error: unknown) =>
        this.#log.debug({ error }, "rejected calls wait for the database"),
      );
    }, FLUSH_AFTER_MS).unref();
  }

  async #write(): Promise<void> {
    const refused = [...this.#latest.values()]
      .flat()
      .sort((one, other) => one.at - other.at);
    const counted = [...this.#hours.values()];
    this.#latest = new Map();
    this.#hours = new Map();
    if (counted.length === 0) {
      return;
    }
    try {
      await insertRefusals(this.#pool, refused, counted);
    } catch (error) {
      this.#restore(refused, counted);
      throw error;
    }
  }

  /** Puts a failed batch back, before what was recorded meanwhile. */
  #restore(refused: readonly Refused[], counted: readonly RefusedHour[]): void {
    const since = [...this.#latest.values()].flat();
    this.#latest = new Map();
    for (const one of [...refused, ...since]) {
      this.#note(one);
    }
    for (const one of counted) {
      this.#count(one);
    }
    this.#schedule();
  }
}
