import type { Logger } from "pino";
import { isKnownRunner } from "../pricing/local-runner.ts";
import { DeploymentAgents } from "../providers/outgoing-agent.ts";
import { isEnabled, type PricedDeployment } from "../routing/catalog.ts";
import { accessOf, rootOf } from "./address.ts";
import { loadModel } from "./load-model.ts";
import { Preloads } from "./preloads.ts";
import { MAX_ANSWER_BYTES, probe } from "./probe.ts";
import { loadingOf, type Loading, type RunnerState } from "./runner-state.ts";
import type { SlotLeases } from "./slot-leases.ts";
import { Slots } from "./slots.ts";

interface RunnersOptions {
  /** The same list until the configuration changes. */
  readonly deployments: () => readonly PricedDeployment[];
  /** Between two probes; null: there are none. */
  readonly probeMs: () => number | null;
  readonly connectMs: number;
  /** Of schedules. */
  readonly timeZone: string;
  readonly leases: SlotLeases | null;
  readonly log: Logger;
}

interface Runner {
  /** One of its deployments, which all have its address and key. */
  readonly deployment: PricedDeployment;
  state: RunnerState | null;
  probedAt: number;
  probing: Promise<RunnerState> | null;
}

const TICK_MS = 1_000;
/** One that is gone is looked for more often. */
const GONE_PROBE_MS = 2_000;

/** Whether the state of a deployment's server is followed: it is known to be a runner, or has settings of one. */
export function isManaged(deployment: PricedDeployment): boolean {
  return deployment.runner !== null || isKnownRunner(deployment);
}

/**
 * The local runners, by address and key: which are there, and which models they have loaded. Each is probed at an interval; its
 * kind is recognised from its answers.
 */
export class Runners {
  readonly slots: Slots;
  readonly #options: RunnersOptions;
  readonly #agents: DeploymentAgents;
  readonly #preloads: Preloads;
  readonly #timer: NodeJS.Timeout;
  #runners = new Map<string, Runner>();
  /** The list that the runners are from. */
  #listed: readonly PricedDeployment[] = [];
  #gone = 0;

  constructor(options: RunnersOptions) {
    const { connectMs, leases, log, timeZone } = options;
    this.#options = options;
    this.#agents = new DeploymentAgents(connectMs, MAX_ANSWER_BYTES);
    this.slots = new Slots({
      reported: (deployment) => this.stateOf(deployment)?.report?.slots ?? null,
      leases,
    });
    this.#preloads = new Preloads({
      timeZone,
      isThere: (deployment) => {
        const state = this.stateOf(deployment);
        return state !== null && state.report !== null && state.gone === null;
      },
      load: (deployment, signal) => this.load(deployment, signal, false),
      log,
    });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    setImmediate(() => this.#tick());
  }

  /** Runners that cannot be reached. */
  get gone(): number {
    return this.#gone;
  }

  /** null: it is not a runner, or has not been probed yet. */
  stateOf(deployment: PricedDeployment): RunnerState | null {
    return isManaged(deployment)
      ? (this.#runners.get(accessOf(deployment))?.state ?? null)
      : null;
  }

  /** Of the deployment's model; null: unknown. */
  loadingOf(deployment: PricedDeployment): Loading | null {
    const report = this.stateOf(deployment)?.report ?? null;
    return report === null ? null : loadingOf(report, deployment.model);
  }

  /** Why a deployment's runner cannot be reached, in one sentence; null: it can, as far as is known. */
  goneReason(deployment: PricedDeployment): string | null {
    return this.#gone === 0 ? null : (this.stateOf(deployment)?.gone ?? null);
  }

  /** The state now. Probes of one runner at the same time are one. */
  refresh(deployment: PricedDeployment): Promise<RunnerState> {
    return this.#probe(this.#runnerOf(deployment));
  }

  /** A call could not reach the deployment: its runner is probed at once. */
  suspect(deployment: PricedDeployment): void {
    if (isManaged(deployment) && this.#options.probeMs() !== null) {
      void this.refresh(deployment);
    }
  }

  /** Whether its model must be loaded first: by the latest probe, and again by one now. */
  async isCold(deployment: PricedDeployment): Promise<boolean> {
    const known = this.loadingOf(deployment);
    if (known === null || known === "loaded") {
      return false;
    }
    await this.refresh(deployment);
    const now = this.loadingOf(deployment);
    return now !== null && now !== "loaded";
  }

  /**
   * Has a deployment's model loaded, and waits while it is; some runners load it when it is called (`forCall`: a call follows).
   * Throws `UpstreamFailure` when the runner reports an error or takes longer than `cold_load_timeout`, or the signal's reason.
   */
  async load(
    deployment: PricedDeployment,
    signal: AbortSignal,
    forCall: boolean,
  ): Promise<void> {
    await loadModel({
      agents: this.#agents,
      deployment,
      report: () => this.stateOf(deployment)?.report ?? null,
      refresh: () => this.refresh(deployment),
      signal,
      forCall,
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#preloads.stop();
    this.#options.leases?.stop();
    await this.#agents.destroy();
  }

  #runnerOf(deployment: PricedDeployment): Runner {
    const access = accessOf(deployment);
    let runner = this.#runners.get(access);
    if (runner === undefined) {
      runner = { deployment, state: null, probedAt: 0, probing: null };
      this.#runners.set(access, runner);
    }
    return runner;
  }

  #tick(): void {
    const probeMs = this.#options.probeMs();
    const deployments = this.#options.deployments();
    if (deployments !== this.#listed) {
      this.#list(deployments);
    }
    // A line goes on with the slots of a new configuration or report, also where no call comes.
    deployments.forEach((deployment) => this.slots.of(deployment));
    if (probeMs === null) {
      return;
    }
    this.#preloads.tick(deployments);
    const now = performance.now();
    for (const runner of this.#runners.values()) {
      const isGone = runner.state !== null && runner.state.gone !== null;
      const every = isGone ? Math.min(GONE_PROBE_MS, probeMs) : probeMs;
      if (runner.state === null || now - runner.probedAt >= every) {
        void this.#probe(runner);
      }
    }
  }

  /** Forgets runners that no deployment has any more. */
  #list(deployments: readonly PricedDeployment[]): void {
    this.#listed = deployments;
    const before = this.#runners;
    this.#runners = new Map();
    for (const deployment of deployments) {
      if (isManaged(deployment) && isEnabled(deployment)) {
        const access = accessOf(deployment);
        const { state = null, probedAt = 0 } = before.get(access) ?? {};
        const runner = { deployment, state, probedAt, probing: null };
        this.#runners.set(access, runner);
      }
    }
    this.#countGone();
  }

  #probe(runner: Runner): Promise<RunnerState> {
    runner.probing ??= probe(this.#agents, runner.deployment, runner.state)
      .then((state) => {
        this.#changed(runner, state);
        return state;
      })
      .finally(() => {
        runner.probing = null;
      });
    return runner.probing;
  }

  #changed(runner: Runner, state: RunnerState): void {
    const before = runner.state;
    runner.state = state;
    runner.probedAt = performance.now();
    this.#countGone();
    const { log } = this.#options;
    const address = runner.deployment.apiBase;
    if (state.gone !== null && (before?.gone ?? null) === null) {
      log.warn({ address, reason: state.gone }, "a local runner is gone");
    } else if (state.gone === null && (before?.gone ?? null) !== null) {
      log.info({ address }, "a local runner is back");
    }
  }

  #countGone(): void {
    const gone = [...this.#runners.values()].filter(
      ({ state }) => state !== null && state.gone !== null,
    );
    this.#gone = new Set(gone.map(({ deployment }) => rootOf(deployment))).size;
  }
}
