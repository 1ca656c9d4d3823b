import type { Logger } from "pino";
import { query, type Pool } from "../database/pool.ts";

/** What was asked and answered, as JSON texts. */
export interface StoredPrompt {
  readonly requestId: string;
  readonly startedAt: number;
  readonly request: string;
  readonly response: string | null;
}

/** Prompts and answers on their way into the database: a call never waits for it. */
export interface PromptLog {
  record(prompt: StoredPrompt): void;
  /** Brings what waits into the database; a failure keeps it for the next time. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const FLUSH_AFTER_MS = 500;
/** Bounds of what waits: a database that is away must not fill the memory. */
const MOST_CHARACTERS = 16 * 1024 * 1024;
const LONGEST_CHARACTERS = 1024 * 1024;

/** Gathers prompts and writes them in batches; where too much waits, the newest are left out. */
export function createPromptLog(pool: Pool, log: Logger): PromptLog {
  let waiting: StoredPrompt[] = [];
  let characters = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) {
      return;
    }
    try {
      await query(
        pool,
        `INSERT INTO prompts (request_id, started_at, request, response)
           SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING`,
        [
          batch.map(({ requestId }) => requestId),
          batch.map(({ startedAt }) => new Date(startedAt).toISOString()),
          batch.map(({ request }) => request),
          batch.map(({ response }) => response),
        ],
      );
    } catch (error) {
      waiting = [...batch, ...waiting];
      schedule();
      throw error;
    }
    characters -= batch.reduce((sum, prompt) => sum + sizeOf(prompt), 0);
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.catch(() => undefined).then(write);
    return writing;
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      flush().catch((error: unknown) =>
        log.debug({ error }, "prompts wait for the database"),
      );
    }, FLUSH_AFTER_MS).unref();
  }

  return {
    record(prompt) {
      const kept = {
        ...prompt,
        request: holdable(prompt.request),
        response: prompt.response === null ? null : holdable(prompt.response),
      };
      if (characters + sizeOf(kept) > MOST_CHARACTERS) {
        return;
      }
      characters += sizeOf(kept);
      waiting.push(kept);
      schedule();
    },
    flush,
    async stop() {
      await flush().catch(() => undefined);
      clearTimeout(timer);
    },
  };
}

function sizeOf({ request, response }: StoredPrompt): number {
  return request.length + (response?.length ?? 0);
}

/** Postgres holds neither NUL nor half a character in text. */
function holdable(text: string): string {
  return text
    .slice(0, LONGEST_CHARACTERS)
    .toWellFormed()
    .replaceAll("\0", "\uFFFD");
}
