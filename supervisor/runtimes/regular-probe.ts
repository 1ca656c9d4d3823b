import { setTimeout as sleep } from "node:timers/promises";
import { textOf } from "../../core/failure.ts";
import { isWithin } from "../../core/clock-jumps.ts";
import type { ServiceView } from "./runtime.ts";

interface RegularProbeOptions {
  /** Updates the state of all services; throws if their engine does not answer. */
  readonly probe: () => Promise<void>;
  /** Called when the engine stops answering, and when the reason changes. */
  readonly onTrouble: (sentence: string) => void;
  /** Milliseconds between two probes. */
  readonly every: number;
  /** Milliseconds for which the latest state counts while the engine does not answer. */
  readonly unknownAfter: number;
}

/** Since when the engine does not answer, in milliseconds since 1970, and why. */
export interface Silence {
  readonly since: number;
  readonly reason: string;
}

/** Repeats a probe of a container engine or an orchestrator, and remembers since when it fails. */
export class RegularProbe {
  readonly #options: RegularProbeOptions;
  readonly #stopped = new AbortController();
  #outage: Silence | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(options: RegularProbeOptions) {
    this.#options = options;
  }

  /** Probes once, then regularly; never throws. */
  async start(): Promise<void> {
    await this.#probeOnce();
    this.#working = this.#repeat();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
  }

  /** Of the latest probe; undefined if the engine answered. */
  outage(): Silence | undefined {
    return this.#outage;
  }

  /** Undefined while the latest state counts. */
  silence(): Silence | undefined {
    return this.#outage === undefined ||
      isWithin(this.#outage.since, this.#options.unknownAfter, Date.now())
      ? undefined
      : this.#outage;
  }

  async #repeat(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await sleep(this.#options.every, undefined, { signal }).catch(() => {});
      if (!signal.aborted) {
        await this.#probeOnce();
      }
    }
  }

  async #probeOnce(): Promise<void> {
    try {
      await this.#options.probe();
      this.#outage = undefined;
    } catch (error) {
      const reason = textOf(error);
      if (this.#outage?.reason !== reason) {
        this.#options.onTrouble(reason);
      }
      this.#outage = { since: this.#outage?.since ?? Date.now(), reason };
    }
  }
}

/** In place of the services if the engine has never answered, which must not look like a host without any. */
export function unknownEngine(name: string, silence: Silence): ServiceView {
  return {
    name,
    state: "unknown",
    pid: null,
    address: "",
    port: 0,
    adopted: false,
    tookMs: null,
    restarts: 0,
    ...silence,
  };
}
