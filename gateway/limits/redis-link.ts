import type { Redis } from "ioredis";
import { textOf } from "../../core/failure.ts";
import { RedisAway, RedisSession, randomId } from "./redis-session.ts";
import {
  listAt,
  numberAt,
  STALE,
  type Reply,
  type ScriptName,
} from "./scripts.ts";

type LinkState = "connecting" | "joining" | "ready" | "away" | "closed";

/** The state that an instance restores when it joins: calls of the scripts `parts` and `assign`, in this order. */
export interface OwnParts {
  readonly parts: readonly (readonly string[])[];
  readonly totals: readonly (readonly string[])[];
  /** They did not all arrive. */
  failed(): void;
}

interface LinkOptions {
  readonly redis: Redis;
  readonly instance: string;
  readonly prefix: string;
  readonly now: (() => number) | null;
  /** Longest wait for an answer. */
  readonly deadlineMs: number;
  readonly beatMs: number;
  /** Longest that calls wait for the other instances to set their parts again. */
  readonly rebuildMs: number;
  /** An instance that finds no generation and knows no peers waits this long for others to join. */
  readonly discoverMs: number;
  /** Calls in the journal of this instance that are not in the ledger. */
  readonly undrained: () => number;
  readonly ownParts: () => OwnParts;
  readonly onJoined: () => void;
  readonly onAway: (reason: string) => void;
  readonly onReaped: (leases: number) => void;
  /** Spend and leases of all instances, of each entity with a budget where they changed since the last heartbeat. */
  readonly onMoved: (moved: readonly Reply[]) => void;
}

const ALIVE_MS = 3_000;
const RETRY_MS = 500;
const HANDSHAKE_MS = 5_000;

/**
 * This instance's membership in Redis. All limit data belongs to a generation, marked in Redis; a flushed Redis has no mark.
 * The first instance to notice starts a new generation and names the instances that were alive; each of them joins again and
 * sets its parts, and admits wait for that. A connection is a session: what an earlier session sent and Redis reads late
 * is rejected.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #redis: Redis;
  readonly #deadlineMs: number;
  readonly #session: RedisSession;
  readonly #createdAt = performance.now();
  #state: LinkState = "connecting";
  #open = false;
  #alive: readonly string[];
  /** Time of Redis up to which this instance has received all changes; reset when it joins a generation. */
  #heardTo = "0";
  #joining = false;
  #triedAt = -Infinity;
  #beating = false;
  #handshakeSince: number | null = null;
  #gate = Promise.withResolvers<void>();
  readonly #watch: NodeJS.Timeout;
  readonly #beats: NodeJS.Timeout;
  readonly #onReady = (): void => {
    if (this.#state === "connecting") {
      void this.#join(false);
    } else if (this.#state === "away") {
      void this.#join(true);
    }
  };
  readonly #onClose = (): void => {
    this.#session.forgetScripts();
    if (this.#state !== "connecting") {
      this.giveUp("the connection was closed");
    }
  };

  constructor(options: LinkOptions) {
    this.#options = options;
    const { redis, instance, deadlineMs } = options;
    this.#redis = redis;
    this.#deadlineMs = deadlineMs;
    this.#session = new RedisSession({
      redis,
      instance,
      prefix: options.prefix,
      now: options.now,
      onFailure: (reason) => this.giveUp(reason),
    });
    this.#alive = [instance];
    this.#watch = setInterval(
      () => this.#look(),
      Math.min(100, deadlineMs / 4),
    ).unref();
    this.#beats = setInterval(() => this.#beat(), options.beatMs).unref();

    redis.on("ready", this.#onReady);
    redis.on("close", this.#onClose);
    redis.on("end", this.#onClose);
    if (redis.status === "ready") {
      this.#onReady();
    }
  }

  state(): LinkState {
    return this.#state;
  }

  /** Own parts have been sent: what changes them may follow. */
  open(): boolean {
    return this.#open;
  }

  /** Rejected (STALE) calls have changed nothing; the link then joins again. Throws {@link RedisAway}. */
  async run(name: ScriptName, args: readonly string[]): Promise<Reply> {
    if (!this.#open) {
      throw new RedisAway("limits are not available in Redis");
    }
    const reply = await this.#session.send(name, args);
    if (reply[0] === STALE && this.#state === "ready") {
      this.#enter("joining");
      void this.#join(false);
    }
    return reply;
  }

  /** As `run`; null: Redis is away, and whether the script ran is unknown. */
  async tryRun(
    name: ScriptName,
    args: readonly string[],
  ): Promise<Reply | null> {
    try {
      return await this.run(name, args);
    } catch (error) {
      if (error instanceof RedisAway) {
        return null;
      }
      throw error;
    }
  }

  /** Until the link is ready or away. */
  settled(): Promise<void> {
    return this.#gate.promise;
  }

  giveUp(reason: string): void {
    if (this.#state === "closed") {
      return;
    }
    this.#open = false;
    this.#session.abandon(reason);
    if (this.#state === "away") {
      return;
    }
    this.#state = "away";
    this.#triedAt = performance.now();
    this.#options.onAway(reason);
    this.#gate.resolve();
  }

  /** Starts a new generation, in which no total is known; false unless Redis is available. */
  restart(): boolean {
    if (this.#state !== "ready") {
      return false;
    }
    this.#enter("joining");
    void this.#join(true);
    return true;
  }

  generation(): string {
    return this.#session.generation;
  }

  /** Instances alive, including this one, when Redis last answered. */
  instances(): readonly string[] {
    return this.#alive;
  }

  async close(): Promise<void> {
    if (this.#state === "closed") {
      return;
    }
    clearInterval(this.#watch);
    clearInterval(this.#beats);
    this.#redis.off("ready", this.#onReady);
    this.#redis.off("close", this.#onClose);
    this.#redis.off("end", this.#onClose);
    const leaving =
      this.#state === "ready"
        ? this.#session
            .send("leave", [String(this.#options.undrained())])
            .catch(() => undefined)
        : null;
    const late = setTimeout(() => this.giveUp("closing"), this.#deadlineMs);
    await leaving;
    clearTimeout(late);
    this.#state = "closed";
    this.#open = false;
    this.#gate.resolve();
  }

  async #join(newGeneration: boolean): Promise<void> {
    if (this.#joining) {
      return;
    }
    this.#joining = true;
    this.#triedAt = performance.now();
    try {
      for (let attempt = 0; ; attempt++) {
        if (await this.#joinOnce(newGeneration && attempt === 0)) {
          break;
        }
        if (attempt === 4) {
          throw new RedisAway("limits in Redis were flushed repeatedly");
        }
      }
      this.#enter("ready");
      this.#options.onJoined();
    } catch (error) {
      this.giveUp(textOf(error));
    } finally {
      this.#joining = false;
    }
  }

  /** False when Redis was flushed, or another generation started, meanwhile. */
  async #joinOnce(newGeneration: boolean): Promise<boolean> {
    await this.#session.loadScripts();
    this.#open = false;
    this.#session.renew();
    const fresh = this.#session.generation === "";
    const [, id] = await this.#session.send("begin", [
      randomId(),
      newGeneration ? "1" : "0",
      String(fresh ? this.#options.discoverMs : 0),
      String(this.#options.rebuildMs),
      fresh ? "1" : "0",
      ...this.#alive,
    ]);
    this.#session.generation = String(id);
    this.#heardTo = "0";
    if (this.#state === "away") {
      this.#enter("joining");
    }
    // Nothing runs between this point and the first await: later changes are sent later.
    this.#open = true;
    const own = this.#options.ownParts();
    try {
      const replies = await Promise.all([
        ...own.parts.map((args) => this.#session.send("parts", args)),
        ...own.totals.map((args) => this.#session.send("assign", args)),
        this.#session.send("ready", []),
      ]);
      if (replies.every(([code]) => code !== STALE)) {
        return true;
      }
    } catch (error) {
      own.failed();
      throw error;
    }
    own.failed();
    this.#open = false;
    return false;
  }

  #enter(next: "joining" | "ready"): void {
    if (next === "joining") {
      this.#open = false;
      this.#gate = Promise.withResolvers<void>();
    }
    this.#state = next;
    if (next === "ready") {
      this.#gate.resolve();
    }
  }

  #look(): void {
    const at = performance.now();
    if (this.#session.isOverdue(at, this.#deadlineMs)) {
      this.giveUp(`no answer within ${this.#deadlineMs} ms`);
      this.#redis.disconnect(true);
      return;
    }
    if (
      this.#state === "connecting" &&
      !this.#joining &&
      at - this.#createdAt > this.#deadlineMs
    ) {
      this.giveUp("no connection");
    }
    if (
      this.#state === "away" &&
      this.#redis.status === "ready" &&
      at - this.#triedAt > RETRY_MS
    ) {
      void this.#join(true);
    }
    // A frozen server still accepts connections but does not answer.
    this.#handshakeSince =
      this.#redis.status === "connect" ? (this.#handshakeSince ?? at) : null;
    if (
      this.#handshakeSince !== null &&
      at - this.#handshakeSince > HANDSHAKE_MS
    ) {
      this.#handshakeSince = null;
      this.#redis.disconnect(true);
    }
  }

  #beat(): void {
    if (this.#state !== "ready" || this.#beating) {
      return;
    }
    this.#beating = true;
    const undrained = String(this.#options.undrained());
    this.run("beat", [String(ALIVE_MS), this.#heardTo, undrained])
      .then((reply) => {
        if (reply[0] === STALE) {
          return;
        }
        this.#options.onReaped(numberAt(reply, 1));
        this.#alive = listAt(reply, 2).map(String);
        this.#heardTo = String(reply[3]);
        this.#options.onMoved(listAt(reply, 4) as readonly Reply[]);
      })
      .catch(() => undefined)
      .finally(() => {
        this.#beating = false;
      });
  }
}
