import type { Logger } from "pino";
import type { Pool } from "../database/pool.ts";
import {
  insertRefusals,
  KEPT_REFUSALS,
  type Refused,
  type RefusedHour,
} from "../database/refusals.ts";

/** What was refused, on its way into the database: a call never waits for it. */
export interface RefusalLog {
  /** Notes one; at once, without asking anybody. */
  record(refused: Refused): void;
  /** Brings what is noted into the database; a failure keeps it for the next time. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const FLUSH_AFTER_MS = 500;
const HOUR_MS = 3_600_000;
/** Bounds of what waits: a database that is away must not fill the memory. */
const MOST_KEYS = 1_000;
const MOST_HOURS = 10_000;
const LONGEST_MESSAGE = 500;
const LONGEST_MODEL = 256;

/** Gathers refusals and writes them in batches, at most one each half second. */
export function createRefusalLog(pool: Pool, log: Logger): RefusalLog {
  let latest = new Map<string, Refused[]>();
  let hours = new Map<string, RefusedHour>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | null = null;
  let stopped = false;

  function note(refused: Refused): void {
    const ofKey = latest.get(refused.apiKey);
    if (ofKey === undefined) {
      if (latest.size < MOST_KEYS) {
        latest.set(refused.apiKey, [refused]);
      }
      return;
    }
    ofKey.push(refused);
    if (ofKey.length > KEPT_REFUSALS) {
      ofKey.shift();
    }
  }

  function count(added: RefusedHour): void {
    const { hour, apiKey, type } = added;
    const id = `${hour} ${type} ${apiKey}`;
    const known = hours.get(id);
    if (known === undefined && hours.size >= MOST_HOURS) {
      return;
    }
    hours.set(id, {
      ...added,
      count: added.count + (known?.count ?? 0),
      lastAt: Math.max(added.lastAt, known?.lastAt ?? 0),
    });
  }

  async function write(): Promise<void> {
    const refused = [...latest.values()]
      .flat()
      .sort((one, other) => one.at - other.at);
    const counted = [...hours.values()];
    latest = new Map();
    hours = new Map();
    if (counted.length === 0) {
      return;
    }
    try {
      await insertRefusals(pool, refused, counted);
    } catch (error) {
      const since = latest;
      latest = new Map();
      for (const one of [...refused, ...[...since.values()].flat()]) {
        note(one);
      }
      for (const one of counted) {
        count(one);
      }
      schedule();
      throw error;
    }
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = (writing ?? Promise.resolve())
      .catch(() => undefined)
      .then(write)
      .finally(() => (writing = null));
    return writing;
  }

  function schedule(): void {
    if (timer !== undefined || stopped) {
      return;
    }
    timer = setTimeout(() => {
      flush().catch((error: unknown) =>
        log.debug({ error }, "refusals wait for the database"),
      );
    }, FLUSH_AFTER_MS);
    timer.unref();
  }

  return {
    record(refused) {
      note({
        ...refused,
        model: refused.model?.slice(0, LONGEST_MODEL).toWellFormed() ?? null,
        message: refused.message.slice(0, LONGEST_MESSAGE).toWellFormed(),
      });
      const { at, apiKey, type } = refused;
      const hour = at - (at % HOUR_MS);
      count({ hour, apiKey, type, count: 1, lastAt: at });
      schedule();
    },
    flush,
    async stop() {
      await flush().catch(() => undefined);
      stopped = true;
      clearTimeout(timer);
    },
  };
}
