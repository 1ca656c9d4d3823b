import type { Logger } from "pino";
import { HOUR_MS } from "../../core/duration.ts";
import { openSchedule } from "../../core/schedule.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import { isEnabled, type PricedDeployment } from "../routing/catalog.ts";

interface PreloadOptions {
  readonly timeZone: string;
  /** Whether its runner is there, and recognised. */
  readonly isThere: (deployment: PricedDeployment) => boolean;
  readonly load: (
    deployment: PricedDeployment,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly log: Logger;
  readonly now?: () => number;
}

interface Wanted {
  readonly deployment: PricedDeployment;
  /** Ms since the epoch. */
  readonly since: number;
  isLoading: boolean;
}

/** A model whose runner is not there at the time is loaded when it comes back within this time. */
const WANTED_FOR_MS = HOUR_MS;

/** Loads models at the start and at the times of their schedules. */
export class Preloads {
  readonly #options: PreloadOptions;
  readonly #now: () => number;
  /** When a schedule is due, by deployment and schedule. */
  readonly #due = new Map<string, number>();
  /** Deployments that were to be loaded at the start. */
  readonly #started = new Set<string>();
  readonly #wanted = new Map<string, Wanted>();
  readonly #aborter = new AbortController();

  constructor(options: PreloadOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Asked every second or so. */
  tick(deployments: readonly PricedDeployment[]): void {
    for (const deployment of deployments) {
      if (deployment.runner !== null && isEnabled(deployment)) {
        this.#findDue(deployment);
      }
    }
    for (const [id, wanted] of this.#wanted) {
      if (this.#now() - wanted.since > WANTED_FOR_MS) {
        this.#wanted.delete(id);
      } else if (!wanted.isLoading) {
        this.#tryLoad(id, wanted);
      }
    }
  }

  stop(): void {
    this.#aborter.abort();
  }

  #findDue(deployment: PricedDeployment): void {
    const { id, runner } = deployment;
    if (runner?.preload.atStart === true && !this.#started.has(id)) {
      this.#started.add(id);
      this.#want(deployment);
    }
    for (const cron of runner?.preload.crons ?? []) {
      const name = `${id}|${cron}`;
      const due = this.#due.get(name);
      if (due === undefined || due <= this.#now()) {
        const schedule = openSchedule(cron, this.#options.timeZone);
        this.#due.set(name, schedule.next(this.#now()) ?? Infinity);
      }
      if (due !== undefined && due <= this.#now()) {
        this.#want(deployment);
      }
    }
  }

  #want(deployment: PricedDeployment): void {
    const since = this.#now();
    this.#wanted.set(deployment.id, { deployment, since, isLoading: false });
  }

  #tryLoad(id: string, wanted: Wanted): void {
    const { deployment } = wanted;
    const { isThere, load, log } = this.#options;
    if (!isThere(deployment)) {
      return;
    }
    wanted.isLoading = true;
    const { alias, model } = deployment;
    load(deployment, this.#aborter.signal)
      .then(
        () => log.info({ alias, model }, "a model is preloaded"),
        (error: unknown) => {
          if (!this.#aborter.signal.aborted) {
            const reason =
              error instanceof UpstreamFailure ? error.message : String(error);
            log.warn({ alias, model, reason }, "a model was not preloaded");
          }
        },
      )
      .finally(() => this.#wanted.delete(id))
      .catch(() => undefined);
  }
}
