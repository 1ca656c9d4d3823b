import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { startRace, type Race } from "../calls/race.ts";
import {
  parseRecord,
  recordOf,
  textOf,
  type JsonRecord,
} from "../providers/json.ts";
import type { BackgroundRun } from "./kept.ts";
import type { OpenedResponse } from "./open.ts";
import type { ResponseStore } from "./store.ts";
import { failedResponse, type StoredResponse } from "./stored-response.ts";

/** Names a run in the request that carries it out, which this process sends itself. */
const HEADER = "x-hearth-background";
/** Well within the lease of a run. */
const BEAT_MS = 2_000;

/** The answer of the request that carries a run out. */
export interface RunAnswer {
  readonly statusCode: number;
  readonly payload: string;
}

/** A response that is created while its client polls for it. */
export class Run implements BackgroundRun {
  readonly #admitted = Promise.withResolvers<null>();
  readonly #race: Race = startRace("by POST /v1/responses/ID/cancel");
  readonly #name = randomUUID();
  #sink: ServerResponse | null = null;
  #failed: JsonRecord | null = null;
  #isCancelled = false;
  /** Set before it starts. */
  opened: OpenedResponse | null = null;

  /** The headers of its request: unguessable, so that no client can take a run over. */
  get headers(): Readonly<Record<string, string>> {
    return { ...this.#race.headers, [HEADER]: this.#name };
  }

  isNamed(name: string): boolean {
    return this.#name === name;
  }

  /** Where its answer goes: without a reader, it is never idle. */
  answersTo(sink: ServerResponse): void {
    this.#sink = sink;
    sink.setTimeout = () => sink;
    if (this.#isCancelled) {
      this.cancel();
    }
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

  /** Stops its provider, like a client that leaves. */
  cancel(): void {
    this.#isCancelled = true;
    this.#race.end();
    this.#sink?.destroy();
  }

  ended(): void {
    this.#race.end();
  }
}

/** The responses that this process creates in background. */
export class BackgroundResponses {
  readonly #store: ResponseStore;
  readonly #log: Logger;
  /** By the id of the response. */
  readonly #runs = new Map<string, Run>();
  readonly #ends = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: ResponseStore, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** The run that a request of this process carries out; null: the request is a client's. */
  runOf(headers: IncomingHttpHeaders): Run | null {
    const name = headers[HEADER];
    return typeof name === "string"
      ? ([...this.#runs.values()].find((run) => run.isNamed(name)) ?? null)
      : null;
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
        await this.#store.end(owner, stored, failureOf(stored, run, answer));
      }
    } catch (error) {
      this.#log.warn(
        { error, response: id },
        "the end of a response in background could not be stored",
      );
    }
    this.#runs.delete(id);
    if (this.#runs.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
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
    return { ...response, ...failed };
  }
  const error = recordOf(parseRecord(answer?.payload ?? "")?.["error"]);
  return failedResponse(
    response,
    textOf(error["message"]) || "The answer could not be stored.",
    answer?.statusCode === 429 ? "rate_limit_exceeded" : "server_error",
  );
}
