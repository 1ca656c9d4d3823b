import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { request } from "undici";
import { MINUTE_MS } from "../../core/duration.ts";
import type { CallWebhookConfig } from "../config/types.ts";
import { outgoingAgent } from "../providers/outgoing-agent.ts";
import { signedHeaders } from "./signature.ts";

/** Bounds of what waits while the receiver is unavailable. */
const MAX_WAITING = 10_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;
const BATCH = 100;
const SEND_AFTER_MS = 1_000;
const TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 10;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = MINUTE_MS;
const MAX_RETRY_AFTER_SECONDS = 3_600;

/** Statuses that say nothing about the request itself. */
const TEMPORARY = new Set([408, 425, 429]);

/** Calls of a webhook since the start: each is delivered, dropped or waiting. */
export interface WebhookCounts {
  readonly delivered: number;
  /** Because too many were waiting. */
  readonly overflowed: number;
  /** Because the receiver did not accept them. */
  readonly rejected: number;
  readonly waiting: number;
}

type Delivery =
  | { readonly kind: "accepted" }
  | { readonly kind: "rejected"; readonly reason: string }
  | {
      readonly kind: "unavailable";
      readonly reason: string;
      readonly retryAfterMs: number | null;
    };

/** Posts finished calls to a receiver as JSON lists, at least once and in order. A call only adds to a list in memory. */
export class CallWebhook {
  readonly #config: CallWebhookConfig;
  readonly #log: Logger;
  readonly #agent = outgoingAgent({ connections: 1 });
  /** JSON texts. */
  #waiting: string[] = [];
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;
  #stopping = new AbortController();
  #isFailing = false;
  #delivered = 0;
  #overflowed = 0;
  #rejected = 0;

  constructor(config: CallWebhookConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
  }

  get content(): boolean {
    return this.#config.content;
  }

  /** Whether calls with this outcome are posted. */
  wants(status: "success" | "failure"): boolean {
    return this.#config.calls === "all" || this.#config.calls === status;
  }

  add(payload: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(payload);
    if (
      this.#waiting.length >= MAX_WAITING ||
      this.#characters + text.length > MAX_CHARACTERS
    ) {
      this.#overflowed++;
      return;
    }
    this.#waiting.push(text);
    this.#characters += text.length;
    if (this.#waiting.length >= BATCH) {
      this.#startSending();
    } else {
      this.#timer ??= setTimeout(
        () => this.#startSending(),
        SEND_AFTER_MS,
      ).unref();
    }
  }

  counts(): WebhookCounts {
    return {
      delivered: this.#delivered,
      overflowed: this.#overflowed,
      rejected: this.#rejected,
      waiting: this.#waiting.length,
    };
  }

  /** Posts what waits; what the receiver does not accept at the first attempt is dropped. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#startSending();
    await this.#sending;
    await this.#agent.close();
  }

  #startSending(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      const isAccepted = await this.#deliver(batch);
      // Only now: until then it counts as waiting, and the bounds hold.
      this.#waiting.splice(0, batch.length);
      this.#characters -= batch.reduce((sum, { length }) => sum + length, 0);
      if (isAccepted) {
        this.#delivered += batch.length;
      } else {
        this.#rejected += batch.length;
      }
    }
  }

  /** Tries until the receiver accepts or rejects the batch; false: it is dropped. */
  async #deliver(batch: readonly string[]): Promise<boolean> {
    // The same for every attempt, so that a receiver can ignore repetitions.
    const id = randomUUID();
    const body = `[${batch.join(",")}]`;
    for (let attempt = 1; ; attempt++) {
      const delivery = await this.#post(id, body);
      if (delivery.kind === "accepted") {
        this.#noteAccepted();
        return true;
      }
      this.#noteFailed(delivery.reason);
      const isOver = delivery.kind === "rejected" || attempt >= MAX_ATTEMPTS;
      if (isOver || this.#stopping.signal.aborted) {
        return false;
      }
      await this.#pause(delivery.retryAfterMs ?? pauseMs(attempt));
    }
  }

  async #post(id: string, body: string): Promise<Delivery> {
    const { url, headers, secret } = this.#config;
    const own = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
    );
    try {
      const response = await request(url, {
        method: "POST",
        dispatcher: this.#agent,
        headers: {
          ...own,
          "content-type": "application/json",
          "user-agent": "hearth",
          ...signedHeaders(secret, id, Date.now(), body),
        },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      // Reads the answer, so that the connection can be used again.
      await response.body.dump({ limit: 64 * 1024 });
      return deliveryOf(response.statusCode, response.headers["retry-after"]);
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      return {
        kind: "unavailable",
        reason: code ?? message ?? "connection failed",
        retryAfterMs: null,
      };
    }
  }

  /** Ends early when the gateway stops. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }

  #noteAccepted(): void {
    if (this.#isFailing) {
      this.#log.info("the call webhook accepts finished calls again");
    }
    this.#isFailing = false;
  }

  #noteFailed(reason: string): void {
    if (!this.#isFailing) {
      this.#log.warn(
        { reason },
        "the call webhook does not accept finished calls; calls are not affected",
      );
    }
    this.#isFailing = true;
  }
}

function deliveryOf(
  status: number,
  retryAfter: string | readonly string[] | undefined,
): Delivery {
  if (status >= 200 && status < 300) {
    return { kind: "accepted" };
  }
  const reason = `status ${status}`;
  if (status < 500 && !TEMPORARY.has(status)) {
    return { kind: "rejected", reason };
  }
  const seconds = Number(retryAfter);
  return {
    kind: "unavailable",
    reason,
    retryAfterMs:
      seconds > 0 ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) * 1_000 : null,
  };
}

/** Doubles with each attempt, with jitter: receivers that come back are not called by all instances at once. */
function pauseMs(attempt: number): number {
  const pause = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return pause * (0.5 + Math.random() / 2);
}
