import type { Logger } from "pino";
import { setImmediate as nextTurn } from "node:timers/promises";
import { query, type Pool } from "../database/pool.ts";
import { maskKeys } from "../guardrails/mask-keys.ts";

/** A request and its answer, as JSON texts. */
interface StoredPrompt {
  readonly requestId: string;
  readonly startedAt: number;
  /** Of the request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly request: string;
  readonly response: string | null;
}

const FLUSH_AFTER_MS = 500;
/** Limits of what waits in memory while the database is unavailable. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
const MAX_TEXT_CHARACTERS = 1024 * 1024;

/** Writes prompts and answers, without API keys, to the database in batches; calls never wait for it. When too much waits, new ones are dropped. */
export class PromptLog {
  readonly #pool: Pool;
  readonly #log: Logger;
  #waiting: StoredPrompt[] = [];
  /** Of the waiting ones, those whose keys are masked: a failed batch is not masked again. */
  readonly #masked = new WeakSet<StoredPrompt>();
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
  }

  record(prompt: StoredPrompt): void {
    const stored = {
      ...prompt,
      request: storable(prompt.request),
      response: prompt.response === null ? null : storable(prompt.response),
    };
    if (this.#characters + sizeOf(stored) > MAX_WAITING_CHARACTERS) {
      return;
    }
    this.#characters += sizeOf(stored);
    this.#waiting.push(stored);
    this.#schedule();
  }

  /** Writes what waits to the database; after a failure it stays for the next time. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => this.#write());
    return this.#writing;
  }

  async stop(): Promise<void> {
    await this.flush().catch(() => undefined);
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.flush().catch((error: unknown) =>
        this.#log.debug({ error }, "prompts wait for the database"),
      );
    }, FLUSH_AFTER_MS).unref();
  }

  async #write(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length === 0) {
      return;
    }
    const characters = batch.reduce((sum, prompt) => sum + sizeOf(prompt), 0);
    const masked: StoredPrompt[] = [];
    for (const prompt of batch) {
      masked.push(await this.#withoutKeys(prompt));
      // Long texts take milliseconds each, in which calls would wait.
      await nextTurn();
    }
    try {
      await insertPrompts(this.#pool, masked);
    } catch (error) {
      this.#waiting = [...masked, ...this.#waiting];
      this.#characters +=
        masked.reduce((sum, prompt) => sum + sizeOf(prompt), 0) - characters;
      this.#schedule();
      throw error;
    }
    this.#characters -= characters;
  }

  async #withoutKeys(prompt: StoredPrompt): Promise<StoredPrompt> {
    if (this.#masked.has(prompt)) {
      return prompt;
    }
    const { request, response } = prompt;
    const masked = {
      ...prompt,
      request: await maskKeys(request),
      response: response === null ? null : await maskKeys(response),
    };
    this.#masked.add(masked);
    return masked;
  }
}

async function insertPrompts(
  pool: Pool,
  prompts: readonly StoredPrompt[],
): Promise<void> {
  await query(
    pool,
    `INSERT INTO prompts (request_id, started_at, headers, request, response)
       SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::jsonb[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING`,
    [
      prompts.map(({ requestId }) => requestId),
      prompts.map(({ startedAt }) => new Date(startedAt).toISOString()),
      prompts.map(({ headers }) => storable(JSON.stringify(headers))),
      prompts.map(({ request }) => request),
      prompts.map(({ response }) => response),
    ],
  );
}

function sizeOf({ request, response }: StoredPrompt): number {
  return request.length + (response?.length ?? 0);
}

/** Postgres rejects NUL and lone surrogates in text. */
function storable(text: string): string {
  return text
    .slice(0, MAX_TEXT_CHARACTERS)
    .toWellFormed()
    .replaceAll("\0", "\uFFFD");
}
