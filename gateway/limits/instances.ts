import type { Redis } from "ioredis";
import type { Nanos } from "../pricing/money.ts";
import { entityKeys } from "./entity-keys.ts";
import { RedisAway } from "./redis-session.ts";
import type { Link } from "./redis-link.ts";
import { listAt, numberAt, STALE, type Reply } from "./scripts.ts";

/** A gateway that has registered in Redis. */
export interface InstanceState {
  readonly instance: string;
  /** Since its last heartbeat; null: unknown. */
  readonly silentMs: number | null;
  readonly running: boolean;
  /** Calls in its journal that were not in the ledger at its last heartbeat. */
  readonly undrained: number;
  /** Budgets with spend of this instance that is not in the ledger. */
  readonly budgets: number;
  /** The largest of these sums. */
  readonly pending: Nanos;
}

/** A silent instance may be restarting within this time. */
const RUNNING_MS = 10_000;

export class Instances {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #instance: string;
  readonly #link: Link;

  constructor(options: {
    readonly redis: Redis;
    readonly prefix: string;
    readonly instance: string;
    readonly link: Link;
  }) {
    this.#redis = options.redis;
    this.#prefix = options.prefix;
    this.#instance = options.instance;
    this.#link = options.link;
  }

  async list(): Promise<readonly InstanceState[]> {
    const silent = new Map<string, number>();
    const held = new Map<string, { budgets: number; pending: Nanos }>();
    const undrained = new Map<string, number>();
    for await (const keys of entityKeys(this.#redis, this.#prefix)) {
      const reply = await this.#run("instances", keys);
      const [beats, pending] = [listAt(reply, 2), listAt(reply, 3)];
      const journals = listAt(reply, 4);
      for (let at = 0; at < journals.length; at += 2) {
        undrained.set(String(journals[at]), Number(String(journals[at + 1])));
      }
      for (let at = 0; at < beats.length; at += 2) {
        silent.set(
          String(beats[at]),
          numberAt(reply, 1) - Number(String(beats[at + 1])),
        );
      }
      for (let at = 0; at < pending.length; at += 3) {
        const before = held.get(String(pending[at]));
        held.set(String(pending[at]), {
          budgets: (before?.budgets ?? 0) + numberAt(pending, at + 1),
          pending: Math.max(before?.pending ?? 0, numberAt(pending, at + 2)),
        });
      }
    }
    const names = new Set([
      ...silent.keys(),
      ...held.keys(),
      ...undrained.keys(),
    ]);
    return [...names].map((name) => {
      const silentMs = silent.get(name) ?? null;
      return {
        instance: name,
        silentMs,
        running: silentMs !== null && silentMs < RUNNING_MS,
        undrained: undrained.get(name) ?? 0,
        ...(held.get(name) ?? { budgets: 0, pending: 0 }),
      };
    });
  }

  async forget(gone: string): Promise<void> {
    if (gone === this.#instance) {
      throw new InstanceRunning(
        `"${gone}" is this instance; only an instance that was removed can be forgotten.`,
      );
    }
    const known = (await this.list()).find((one) => one.instance === gone);
    if (known === undefined) {
      throw new InstanceUnknown(
        `Instance "${gone}" not found. GET /instances lists them.`,
      );
    }
    if (known.running) {
      throw new InstanceRunning(
        `"${gone}" is running; only an instance that was removed can be forgotten.`,
      );
    }
    for await (const keys of entityKeys(this.#redis, this.#prefix)) {
      await this.#run("forget", [gone, ...keys]);
    }
  }

  async #run(
    script: "instances" | "forget",
    args: readonly string[],
  ): Promise<Reply> {
    if (!this.#link.open()) {
      throw new RedisAway("Redis is unavailable");
    }
    const reply = await this.#link.run(script, args);
    if (reply[0] === STALE) {
      throw new RedisAway("Redis has lost its data");
    }
    return reply;
  }
}

export class InstanceRunning extends Error {}

export class InstanceUnknown extends Error {}
