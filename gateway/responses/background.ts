import type { Logger } from "pino";
import { startRace, type Race } from "../calls/race.ts";
import {
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { InnerCall } from "./inner-call.ts";
import type { BackgroundRun } from "./response-context.ts";
import { RecordedEvents } from "./recorded-events.ts";
import type { ResponseEvents } from "./response-events.ts";
import type { ResponseStore } from "./store.ts";
import { failedResponse, type StoredResponse } from "./stored-response.ts";

/** Well within the lease of a run. */
const BEAT_MS = 2_000;

/** The answer of the request that carries a run out. */
interface RunAnswer {
  readonly statusCode: number;
  readonly payload: string;
}

/** A response that is created while its client polls for it. */
export class Run extends InnerCall implements BackgroundRun {
  readonly memory = null;
  events: RecordedEvents | null = null;
  readonly #admitted = Promise.withResolvers<null>();
  readonly #race: Race = startRace("by POST /v1/responses/ID/cancel");
  #failed: JsonRecord | null = null;

  override get headers(): Readonly<Record<string, string>> {
    return { ...super.headers, ...this.#race.headers };
  }

  /** Resolves when its limits are reserved. */
  get whenAdmitted(): Promise<null> {
    return this.#admitted.promise;
  }

  get failedResponse(): JsonRecord | null {
    return this.#failed;
  }

  admitted(): void {
    this.#admitted.resolve(null);
  }

  failed(response: JsonRecord): void {
    this.#failed = response;
  }

  override cancel(): void {
    this.#race.end();
    super.cancel();
  }

  override ended(): void {
    this.#race.end();
    super.ended();
  }
}

/** The responses that this process creates in background. */
export class BackgroundResponses {
  readonly #store: ResponseStore;
  readonly #events: ResponseEvents;
  readonly #log: Logger;
  /** By the id of the response. */
  readonly #runs = new Map<string, Run>();
  readonly #ends = new Set<Promise<void>>();
  /** Those who follow a response, by its id. */
  readonly #changes = new Map<string, PromiseWithResolvers<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: ResponseStore, events: ResponseEvents, log: Logger) {
    this.#store = store;
    this.#events = events;
    this.#log = log;
  }

  /**
   * Starts a stored run by `ask`, the request that carries it out. null: it is admitted and goes on by itself; otherwise the
   * answer that rejected it.
   */
  async start<Answer extends RunAnswer>(
    owner: string,
    stored: StoredResponse,
    run: Run,
    ask: () => Promise<Answer>,
  ): Promise<Answer | null> {
    this.#runs.set(stored.id, run);
    this.#timer ??= setInterval(() => void this.#beat(), BEAT_MS);
    const asked = ask();
    const end = this.#end(owner, stored, run, asked).finally(() => {
      this.#ends.delete(end);
    });
    this.#ends.add(end);
    const rejected = asked.then(
      (answer) => (answer.statusCode === 200 ? null : answer),
      () => null,
    );
    return Promise.race([run.whenAdmitted, rejected]);
  }

  /** Records the events of a run, which begins as queued, for those who follow it. */
  async recordEvents(id: string, queued: JsonRecord, run: Run): Promise<void> {
    const begin = ["response.created", "response.queued"].map(
      (type, sequence_number) => ({ type, response: queued, sequence_number }),
    );
    await this.#events.append(id, begin.length - 1, begin);
    run.events = new RecordedEvents(begin.length, async (last, events) => {
      await this.#events.append(id, last, events);
      this.#changed(id);
    });
  }

  /** Resolves when events of a response were written here, or it has ended here, and after `ms` otherwise. */
  async change(id: string, ms: number): Promise<void> {
    const change = this.#changes.get(id) ?? Promise.withResolvers<void>();
    this.#changes.set(id, change);
    const timer = setTimeout(() => this.#changed(id), ms);
    await change.promise;
    clearTimeout(timer);
  }

  /** Whether a response is created here. */
  isRunning(id: string): boolean {
    return this.#runs.has(id);
  }

  /** Cancels a run of this process; another one's notices within {@link BEAT_MS}. */
  cancel(id: string): void {
    this.#runs.get(id)?.cancel();
  }

  /** Resolves when none runs. */
  async ended(): Promise<void> {
    while (this.#ends.size > 0) {
      await Promise.all(this.#ends);
    }
  }

  async #end(
    owner: string,
    stored: StoredResponse,
    run: Run,
    asked: Promise<RunAnswer>,
  ): Promise<void> {
    const { id } = stored;
    // One that was cancelled has no answer.
    const answer = await asked.catch(() => null);
    run.ended();
    try {
      // A whole answer has been stored already.
      if ((await this.#store.running([id])).has(id)) {
        await run.events?.written();
        await this.#store.end(owner, stored, failureOf(stored, run, answer));
      }
    } catch (error) {
      this.#log.warn(
        { error, response: id },
        "the end of a response in background could not be stored",
      );
    }
    this.#runs.delete(id);
    this.#changed(id);
    if (this.#runs.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #changed(id: string): void {
    this.#changes.get(id)?.resolve();
    this.#changes.delete(id);
  }

  /** Keeps the leases, and stops what was cancelled or deleted through another gateway. */
  async #beat(): Promise<void> {
    const ids = [...this.#runs.keys()];
    try {
      const running = await this.#store.running(ids);
      for (const id of ids.filter((one) => !running.has(one))) {
        this.cancel(id);
      }
    } catch (error) {
      this.#log.debug(
        { error },
        "responses in background wait for the database",
      );
    }
  }
}

function failureOf(
  { response }: StoredResponse,
  run: Run,
  answer: RunAnswer | null,
): JsonRecord {
  const failed = run.failedResponse;
  if (failed !== null) {
    return { ...response, ...failed, status: "failed" };
  }
  const error = recordOf(parseRecord(answer?.payload ?? "")?.["error"]);
  return failedResponse(
    response,
    textOf(error["message"]) || "The answer could not be stored.",
    answer?.statusCode === 429 ? "rate_limit_exceeded" : "server_error",
  );
}
