import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import {
  listAt,
  numberAt,
  SCRIPTS,
  STALE,
  type Reply,
  type ScriptName,
} from "./scripts.ts";

/** Redis did not answer, or not usefully (out of memory, loading, read-only). */
export class RedisAway extends Error {}

export type LinkState = "connecting" | "joining" | "ready" | "away" | "closed";

/** What an instance sets again when it arrives: calls of the scripts `parts` and `assign`, in this order. */
export interface OwnParts {
  readonly parts: readonly (readonly string[])[];
  readonly totals: readonly (readonly string[])[];
  /** They did not all arrive. */
  failed(): void;
}

export interface LinkOptions {
  readonly redis: Redis;
  readonly instance: string;
  readonly prefix: string;
  readonly now: (() => number) | null;
  /** Longest wait for an answer. */
  readonly deadlineMs: number;
  readonly beatMs: number;
  /** Longest that calls wait for the other instances to set their parts again. */
  readonly rebuildMs: number;
  /** An instance that finds no generation and knows nobody gives others this long to show themselves. */
  readonly discoverMs: number;
  readonly ownParts: () => OwnParts;
  readonly onJoined: () => void;
  readonly onAway: (reason: string) => void;
  readonly onReaped: (leases: number) => void;
  /** Spend and leases of all instances, of each entity with a budget where they changed since the last heartbeat. */
  readonly onMoved: (moved: readonly Reply[]) => void;
}

/**
 * This instance's place at Redis. All limit data belongs to a generation, marked in Redis; a flushed Redis has no mark.
 * Who notices starts a new generation and names the instances that it knew to be alive; each of them arrives again and
 * sets its parts, and admits wait for that. A connection is a session: what an earlier session sent and Redis reads late
 * is refused.
 */
export interface Link {
  state(): LinkState;
  /** Own parts have been sent: what changes them may follow. */
  open(): boolean;
  /** Refused (STALE) calls have changed nothing; the link is then arriving again. Throws {@link RedisAway}. */
  run(script: ScriptName, args: readonly string[]): Promise<Reply>;
  /** Until the link is ready or away. */
  settled(): Promise<void>;
  giveUp(reason: string): void;
  generation(): string;
  /** Instances alive, this one included, when Redis last answered. */
  instances(): readonly string[];
  close(): Promise<void>;
}

const ALIVE_MS = 3_000;
const RETRY_MS = 500;
const HANDSHAKE_MS = 5_000;

interface Waiter {
  readonly since: number;
  readonly reject: (error: RedisAway) => void;
}

export function createLink(options: LinkOptions): Link {
  const { redis, instance, prefix, now, deadlineMs } = options;
  const waiters = new Set<Waiter>();
  const createdAt = performance.now();
  let state: LinkState = "connecting";
  let open = false;
  let generation = "";
  let session = "";
  let alive: readonly string[] = [instance];
  /** Redis' moment up to which this instance has heard of all changes; none of a generation that it joins. */
  let heardTo = "0";
  let scriptsLoaded = false;
  let joining = false;
  let triedAt = -Infinity;
  let beating = false;
  let handshakeSince: number | null = null;
  let gate = Promise.withResolvers<void>();

  const watch = setInterval(look, Math.min(100, deadlineMs / 4)).unref();
  const beats = setInterval(beat, options.beatMs).unref();
  redis.on("ready", onReady);
  redis.on("close", onClose);
  redis.on("end", onClose);
  if (redis.status === "ready") {
    onReady();
  }

  /** Settles with the answer, or when the link goes away: after the deadline at the latest. No timer of its own. */
  function guarded<T>(ask: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiter = { since: performance.now(), reject };
      waiters.add(waiter);
      ask().then(
        (answer) => {
          waiters.delete(waiter);
          resolve(answer);
        },
        (error: unknown) => {
          if (waiters.delete(waiter)) {
            reject(error);
          }
        },
      );
    });
  }

  async function send(
    name: ScriptName,
    args: readonly string[],
  ): Promise<Reply> {
    const clock = now === null ? "" : String(now());
    try {
      const reply = await guarded(() =>
        redis.callBuffer(
          "EVALSHA",
          SCRIPTS[name].sha,
          0,
          prefix,
          instance,
          generation,
          session,
          clock,
          ...args,
        ),
      );
      return reply as Reply;
    } catch (error) {
      if (error instanceof RedisAway) {
        throw error;
      }
      const reason = messageOf(error);
      if (!reason.startsWith("NOSCRIPT")) {
        goAway(reason);
        throw new RedisAway(reason);
      }
      scriptsLoaded = false;
      return [STALE];
    }
  }

  async function run(
    name: ScriptName,
    args: readonly string[],
  ): Promise<Reply> {
    if (!open) {
      throw new RedisAway("limits are not set in Redis now");
    }
    const reply = await send(name, args);
    if (reply[0] === STALE && state === "ready") {
      enter("joining");
      void join(false);
    }
    return reply;
  }

  async function join(anew: boolean): Promise<void> {
    if (joining) {
      return;
    }
    joining = true;
    triedAt = performance.now();
    try {
      for (let attempt = 0; ; attempt++) {
        if (await joinOnce(anew && attempt === 0)) {
          break;
        }
        if (attempt === 4) {
          throw new RedisAway(
            "the limits in Redis were flushed again and again",
          );
        }
      }
      enter("ready");
      options.onJoined();
    } catch (error) {
      goAway(messageOf(error));
    } finally {
      joining = false;
    }
  }

  /** False when Redis was flushed, or another generation started, meanwhile. */
  async function joinOnce(anew: boolean): Promise<boolean> {
    if (!scriptsLoaded) {
      const loads = Object.values(SCRIPTS).map(({ source }) =>
        guarded(() => redis.script("LOAD", source)),
      );
      await Promise.all(loads);
      scriptsLoaded = true;
    }
    open = false;
    session = randomBytes(6).toString("base64url");
    const fresh = generation === "";
    const [, id] = await send("begin", [
      randomBytes(6).toString("base64url"),
      anew ? "1" : "0",
      String(fresh ? options.discoverMs : 0),
      String(options.rebuildMs),
      fresh ? "1" : "0",
      ...alive,
    ]);
    generation = String(id);
    heardTo = "0";
    if (state === "away") {
      enter("joining");
    }
    // From here to the first await nothing can come between: what changes afterwards is sent afterwards.
    open = true;
    const own = options.ownParts();
    try {
      const replies = await Promise.all([
        ...own.parts.map((args) => send("parts", args)),
        ...own.totals.map((args) => send("assign", args)),
        send("ready", []),
      ]);
      if (replies.every(([code]) => code !== STALE)) {
        return true;
      }
    } catch (error) {
      own.failed();
      throw error;
    }
    own.failed();
    open = false;
    return false;
  }

  function enter(next: "joining" | "ready"): void {
    if (next === "joining") {
      open = false;
      gate = Promise.withResolvers<void>();
    }
    state = next;
    if (next === "ready") {
      gate.resolve();
    }
  }

  function goAway(reason: string): void {
    if (state === "closed") {
      return;
    }
    open = false;
    const abandoned = [...waiters];
    waiters.clear();
    for (const waiter of abandoned) {
      waiter.reject(new RedisAway(reason));
    }
    if (state === "away") {
      return;
    }
    state = "away";
    triedAt = performance.now();
    options.onAway(reason);
    gate.resolve();
  }

  function onReady(): void {
    if (state === "connecting") {
      void join(false);
    } else if (state === "away") {
      void join(true);
    }
  }

  function onClose(): void {
    scriptsLoaded = false;
    if (state !== "connecting") {
      goAway("the connection was closed");
    }
  }

  function look(): void {
    const at = performance.now();
    const [oldest] = waiters;
    if (oldest !== undefined && at - oldest.since > deadlineMs) {
      goAway(`no answer within ${deadlineMs} ms`);
      redis.disconnect(true);
      return;
    }
    if (state === "connecting" && !joining && at - createdAt > deadlineMs) {
      goAway("no connection");
    }
    if (
      state === "away" &&
      redis.status === "ready" &&
      at - triedAt > RETRY_MS
    ) {
      void join(true);
    }
    // A frozen server still accepts connections and then says nothing.
    handshakeSince = redis.status === "connect" ? (handshakeSince ?? at) : null;
    if (handshakeSince !== null && at - handshakeSince > HANDSHAKE_MS) {
      handshakeSince = null;
      redis.disconnect(true);
    }
  }

  function beat(): void {
    if (state !== "ready" || beating) {
      return;
    }
    beating = true;
    run("beat", [String(ALIVE_MS), heardTo])
      .then((reply) => {
        if (reply[0] === STALE) {
          return;
        }
        options.onReaped(numberAt(reply, 1));
        alive = listAt(reply, 2).map(String);
        heardTo = String(reply[3]);
        options.onMoved(listAt(reply, 4) as readonly Reply[]);
      })
      .catch(() => undefined)
      .finally(() => {
        beating = false;
      });
  }

  return {
    state: () => state,
    open: () => open,
    run,
    settled: () => gate.promise,
    giveUp: goAway,
    generation: () => generation,
    instances: () => alive,
    async close() {
      if (state === "closed") {
        return;
      }
      clearInterval(watch);
      clearInterval(beats);
      redis.off("ready", onReady);
      redis.off("close", onClose);
      redis.off("end", onClose);
      const leaving =
        state === "ready" ? send("leave", []).catch(() => undefined) : null;
      const late = setTimeout(() => goAway("closing"), deadlineMs);
      await leaving;
      clearTimeout(late);
      state = "closed";
      open = false;
      gate.resolve();
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
